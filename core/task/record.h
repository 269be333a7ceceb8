#pragma once
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <variant>

#include "core/job/words.h"
#include "core/segments/stack.h"
#include "core/task/schema.h"
#include "core/text/html_text.h"
#include "core/tokenizer/chat_template.h"

namespace sheaf {

/// Where a record stands in its corpus.
struct Place {
  std::string file;
  int64_t row = 0;  ///< line of a text file or row of a table, from 1
};

/// A column of a corpus whose text is part of a record's document.
struct RecordColumn {
  std::string name;
  size_t begin = 0;  ///< where its text begins, in bytes; it ends before the newline that joins the next one
  std::shared_ptr<const std::vector<TextRun>> runs = {};  ///< where it was HTML; nothing: it stands as it was
};

struct Question {
  nlohmann::json id;  ///< null where the corpus has none
  std::string text;
  std::vector<std::string> options;     ///< multiple choice where not empty
  std::vector<double> relevance;        ///< in (0, 1), of each of the record's `documents`
  std::optional<AnswerKind> kind = {};  ///< what its answer may be, where the corpus says it
};

/// Options of a question that letters can tell apart.
constexpr size_t kMostOptions = 26;

/// "A" for the first.
std::string option_letter(size_t option);

/// Refuses a question with more options than there are letters.
void check_options(const Question& question);

/// What the answer to the question may be; `usual`: of questions that do not say it. Refuses a choice without
/// options, and options of another kind of answer.
AnswerKind answer_kind(const Question& question, AnswerKind usual);

/// One record of a corpus: a document to extract from, or a context with its questions.
struct Record {
  Place place;
  nlohmann::json id;     ///< the id column as it stands: string or number
  std::string category;  ///< extract only
  std::string document;  ///< the document columns joined by newlines, or the context
  std::vector<RecordColumn>
      columns;  ///< of the document or the context, in its order; none: one without a name
  std::vector<std::string> documents;  ///< ask only: several documents in place of one
  std::vector<nlohmann::json>
      document_ids;  ///< of each, text or number; where it has none, its number from 1
  std::map<std::string, std::string, std::less<>> fields;  ///< columns that task.prompt names
  std::vector<Question> questions;                         ///< ask only
  Dialog dialog;                                           ///< chat only
  nlohmann::ordered_json kept;               ///< columns that its row repeats, by name; null: none
  int32_t max_tokens = 0;                    ///< chat only: the most tokens of the answer; 0: as the job says
  int32_t samples = 0;                       ///< chat only: answers to draw; 0: as the job says
  std::shared_ptr<const Decoding> decoding;  ///< chat only; nothing: as the job says
  std::shared_ptr<const AnswerObject>
      object;  ///< chat only: the answer is such an object; nothing: free text
};

/// The document, or the documents with a blank line between them.
std::string whole_document(const Record& record);

/// A record that cannot be used, and why; or one and those behind it that are broken in the same way.
struct Reject {
  Place place;
  nlohmann::json id;
  std::string reason;
  int64_t records = 1;   ///< how many it stands for
  int64_t last_row = 0;  ///< Place::row of the last of several
};

/// The kind of a reject: its reason without what is peculiar to the row, numbers and quoted text.
std::string reason_kind(std::string_view reason);

/// A stream of records in input order. A record has a number, its place among all records of the corpus from
/// 0, whether it can be used, is a reject or was lost with others.
class Corpus {
 public:
  virtual ~Corpus() = default;
  /// The next record, good or bad; nothing at the end. Throws only for what ends the job.
  virtual std::optional<std::variant<Record, Reject>> next() = 0;
  /// The number of the record that comes next: all before it were given out, skipped or lost.
  virtual int64_t position() const = 0;
  /// Continues at record `position`, which is not behind. Records that were lost together belong to the first
  /// of them: where `position` is in their midst, all of them are passed over.
  virtual void skip_to(int64_t position) = 0;
  /// How many records there are, but not more than `most`; reads so many of them if needed.
  virtual int64_t count_records(int64_t most) = 0;
  int64_t count_records() { return count_records(INT64_MAX); }
  /// Which share of the corpus was read, where that can be told without knowing how many records there are.
  virtual std::optional<double> share_read() const { return std::nullopt; }
  /// Whether its records can be neither counted nor read again.
  virtual bool is_read_once() const { return false; }
  /// How many records there are, where that is known without reading them.
  virtual std::optional<int64_t> records_expected() const { return std::nullopt; }
};

}  // namespace sheaf
