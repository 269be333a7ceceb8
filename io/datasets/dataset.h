#pragma once
#include "core/job/job.h"
#include "core/task/prompt_template.h"
#include "core/task/record.h"
#include "io/base/json_file.h"

namespace sheaf {

using DatasetOptions = Job::Input::Dataset;

/// An entry of a dataset as a record of sheaf's own corpus, or why it cannot be one.
struct DatasetRow {
  Place place;
  /// ask: {"id", "context", "questions": [{"id", "question", "options", "answers", "extra"}]}; `options` and
  /// `extra` only where there are some, `answers` only where the dataset gives them. hotpotqa and musique
  /// also have "documents", the texts that `context` joins. extract: {"id", "category", "document", "gold":
  /// {attribute: [values]}}.
  ordered_json cells;
  std::string error;  ///< where not empty, the entry is broken
  /// What the entry is called where it is no line of a text file: "article 3, paragraph 1".
  std::string entry = {};
};

/// Where the entry stands, for messages: "file:line", or "file: entry".
std::string place_text(const DatasetRow& row);

class DatasetReader {
 public:
  virtual ~DatasetReader() = default;
  /// The next entry, good or broken; nothing at the end.
  virtual std::optional<DatasetRow> next() = 0;
  /// How many entries there are, where that is known without reading them.
  virtual std::optional<int64_t> entries() const { return std::nullopt; }
};

/// Where a dataset is, and what is wanted of it.
struct DatasetPlace {
  std::string path;
  std::vector<std::string> files;  ///< dataset_files()
  DatasetOptions options;
};
using OpenDataset = std::unique_ptr<DatasetReader>(const DatasetPlace& at);

/// A public dataset that is read as it is downloaded.
struct DatasetFormat {
  std::string name;  ///< as jobs and `sheaf convert` call it
  TaskKind task;
  OpenDataset* open;
  std::string input;       ///< what to point at, for people: "dev-v2.0.json"
  std::string source;      ///< where people get it
  bool documents = false;  ///< whether its questions are about several documents
  bool corpus = false;     ///< whether they are about passages of a collection, which input.corpus names
  bool named = false;      ///< extract: whether its records have ids
};
const std::vector<DatasetFormat>& dataset_formats();
/// Null where the name is none of them.
const DatasetFormat* find_dataset_format(const std::string& name);

/// Refuses a file that is not of the format, saying what is missing.
std::unique_ptr<DatasetReader> open_dataset(const std::string& format, const std::string& path,
                                            const DatasetOptions& options = {});

/// A corpus that `sheaf convert` wrote, or another with its columns, read with its gold answers.
std::unique_ptr<DatasetReader> open_own_corpus(const std::string& path);

/// The files that the dataset at `path` consists of, in the order they are read; `where` begins the message
/// where there is none.
std::vector<std::string> dataset_files(const std::string& format, const std::string& path,
                                       const std::string& where = {});

/// How to make a corpus that is missing, where its name says that `sheaf convert` writes it: needle.parquet,
/// squad.jsonl. Empty for other names.
std::string make_advice(const std::string& path);

/// The format of the file or folder by its look; empty where it is none of the datasets.
std::string guess_dataset_format(const std::string& path);

/// The format that a file or folder that is not `format` has by its look; empty where it is none of them.
std::string likely_format(const std::string& format, const std::string& path);

/// `count` examples out of a dataset, each a passage with one question and its first answer in the words of
/// `wording`, which has the fields document, question, options and answer. Which ones is the same every time.
/// Refuses a dataset that has fewer passages with an answered question.
std::vector<std::string> few_shot_examples(DatasetReader& dataset, int32_t count,
                                           const PromptTemplate& wording);

}  // namespace sheaf
