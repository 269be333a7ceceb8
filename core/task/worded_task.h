#pragma once

#include "core/task/choices.h"
#include "core/task/prompt_text.h"
#include "core/task/value.h"

namespace sheaf {

/// A task with the tokenizer, the template and the job that word its prompts.
class WordedTask : public Task {
 protected:
  explicit WordedTask(const TaskContext& context)
      : context_(context), tokenizer_(context.tokenizer), chat_(context.chat), job_(context.job) {}

  Tokens encode(const std::string& text) const { return encode_part(tokenizer_, text); }
  Tokens encode(const TextPieces& pieces) const { return encode_part(tokenizer_, pieces); }

  /// Adds what the job wants to know of an answer, or of all values of a record in one answer.
  template <class Read>
  void add_details(double logprob, const std::string& text, Read& read) const {
    if (job_.output.logprobs) read.logprob = logprob;
    if (job_.output.raw) read.raw = valid_utf8(text);
  }

  /// The row of answers to a record's questions.
  Row answers_row(const Record& record, std::vector<RowAnswer> read) const {
    if (!job_.input.question.empty()) return {record.id, std::move(read.at(0))};
    std::vector<QuestionAnswer> list;
    for (size_t i = 0; i < read.size(); ++i) list.push_back({record.questions[i].id, std::move(read[i])});
    return {record.id, std::move(list)};
  }

  const TaskContext context_;
  const Tokenizer& tokenizer_;
  const ChatTemplate& chat_;
  const Job& job_;
};

}  // namespace sheaf
