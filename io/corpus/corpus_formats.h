#pragma once
#include <functional>

#include "io/corpus/record_mapper.h"

namespace sheaf {

/// The formats behind open_corpus.
/// `standard_input`: the file to read where `files` says "-".
std::unique_ptr<Corpus> open_jsonl_corpus(std::vector<std::string> files, RecordMapper mapper,
                                          const std::string& standard_input);
std::unique_ptr<Corpus> open_csv_corpus(std::vector<std::string> files, RecordMapper mapper,
                                        const std::string& standard_input);
std::unique_ptr<Corpus> open_parquet_corpus(std::vector<std::string> files, RecordMapper mapper);

/// Refuses a file without JSON lines whose beginning says what it is instead; messages call it `name`.
void refuse_foreign(const std::string& path, const std::string& name);

/// Refuses a mapped column that is not among `columns`, with the nearest.
void check_column(const MappedColumn& column, const std::vector<std::string>& columns,
                  const std::string& file);

/// The records of one text file.
class RecordReader {
 public:
  virtual ~RecordReader() = default;
  /// Goes on to the next record; false at the end.
  virtual bool next() = 0;
  /// The current record, the `number`th of the corpus. `file`: how its place calls the file.
  virtual CorpusRow row(const std::string& file, int64_t number) const = 0;
  /// About how many bytes of the file the records so far take.
  virtual int64_t taken() const = 0;
};

/// The files of a text corpus: where they are read, and how messages and places call them.
struct TextFiles {
  std::vector<std::string> paths, names;
};
/// `standard_input`: the file to read where `files` says "-".
TextFiles text_files(std::vector<std::string> files, const std::string& standard_input);

/// One file after the other, by readers that `open` gives; it gets the number of the file. A stretch of
/// records that are broken in the same way is told in short (AlikeRejects). `numbered`: ids are the numbers
/// of records.
std::unique_ptr<Corpus> open_text_corpus(TextFiles files,
                                         std::function<std::unique_ptr<RecordReader>(size_t file)> open,
                                         bool numbered);

}  // namespace sheaf
