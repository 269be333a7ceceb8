#include <algorithm>

#include "core/base/error.h"
#include "core/task/choices.h"
#include "core/task/prompt_text.h"
#include "core/task/task.h"
#include "core/task/value.h"

namespace sheaf {
namespace {

/// The next turn of a dialog: free text up to the end that the model puts. What stands before the user's last
/// text is the document, so that dialogs with one beginning share it; that text is the question.
class ChatTask : public Task {
 public:
  explicit ChatTask(const TaskContext& context)
      : tokenizer_(context.tokenizer), job_(context.job), chat_(context.chat) {
    auto bin = std::make_shared<BinParts>();
    if (tokenizer_.starts_with_bos && tokenizer_.bos) bin->instruction.push_back(*tokenizer_.bos);
    bin_ = std::move(bin);
  }

  std::string bin_name(const Record&) const override { return "dialogs"; }

  RecordParts parts(const Record& record) override {
    DialogPieces pieces = dialog_pieces(chat_, record.dialog);
    Tokens before, whole;
    tokenizer_.encode_pieces(pieces.before, before);
    std::move(pieces.last.begin(), pieces.last.end(), std::back_inserter(pieces.before));
    tokenizer_.encode_pieces(pieces.before, whole);
    if (whole.empty())
      refuse("{} has no tokens for the prompt; use a model whose tokenizer covers its text",
             tokenizer_name({tokenizer_, chat_, job_}));
    // Both parts together are what the whole prompt gives; a token across their border goes to the question.
    auto cut = std::mismatch(before.begin(), before.end(), whole.begin(), whole.end()).second;
    if (cut == whole.end()) --cut;
    RecordParts parts;
    parts.bin = bin_;
    parts.document.assign(whole.begin(), cut);
    QuestionParts question;
    question.tokens.assign(cut, whole.end());
    question.max_tokens = job_.method.max_value_tokens;
    if (record.max_tokens > 0) question.max_tokens = std::min(question.max_tokens, record.max_tokens);
    question.stop = Stop::text;
    parts.own_questions.push_back(std::move(question));
    return parts;
  }

  Row row(const Record& record, const std::vector<Answer>& answers) const override {
    if (answers.empty()) return {record.id, no_answer()};
    const Answer& answer = answers[0];
    RowAnswer out{valid_utf8(tokenizer_.decode(answer.tokens))};
    out.finish = answer.ending == Ending::length ? Finish::length : Finish::stop;
    if (job_.output.logprobs) out.logprob = answer.logprob;
    if (job_.output.raw) out.raw = valid_utf8(tokenizer_.decode(answer.tokens, false));
    return {record.id, std::move(out)};
  }

 private:
  const Tokenizer& tokenizer_;
  const Job& job_;
  const ChatTemplate& chat_;
  std::shared_ptr<const BinParts> bin_;
};

}  // namespace

std::unique_ptr<Task> make_chat_task(const TaskContext& context) {
  return std::make_unique<ChatTask>(context);
}

}  // namespace sheaf
