#pragma once
#include "core/task/task.h"
#include "core/tokenizer/raw_tokenizer.h"

namespace sheaf {

/// What a service is asked: a dialog that ends with the user's turn.
struct SpelledRequest {
  std::string id;  ///< of the record (extract), or of the question
  Dialog dialog;
};

/// What a service said.
struct SpelledReply {
  std::string text;
  bool cut = false;  ///< it reached a limit of tokens
};

/// The prompts of an extract or ask job as texts, for a model that is elsewhere, and rows from its replies.
/// They are worded and read as the job's own: extract as a JSON object with all values, ask question by
/// question. Needs no model.
class SpelledTask {
 public:
  /// Refuses a job of another kind. `schema` and `examples` must outlive it.
  SpelledTask(const Job& job, const Schema& schema, const Examples& examples);

  /// Refuses what cannot be asked, such as a question with too many options.
  std::vector<SpelledRequest> requests(const Record& record);

  /// The row of a record from one reply per request. What a question without a reply says is null with a
  /// note. Throws a BadText where no reply can be used.
  Row row(const Record& record, const std::vector<std::optional<SpelledReply>>& replies) const;

 private:
  Answer read_object_reply(const Record& record, const SpelledReply& reply) const;
  Answer read_answer_reply(const Question& question, const SpelledReply& reply) const;
  std::string last_words(const Record& record) const;

  Job job_;
  const Schema& schema_;
  RawTokenizer tokenizer_;
  ChatTemplate chat_;
  std::unique_ptr<Task> task_;
};

/// The ids of a record's requests: its own (extract), or those of its questions.
std::vector<std::string> request_ids(const Job& job, const Record& record);

}  // namespace sheaf
