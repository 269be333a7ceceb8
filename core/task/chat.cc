#include <algorithm>
#include <tuple>

#include "core/base/error.h"
#include "core/task/object_answer.h"
#include "core/task/text_answers.h"
#include "core/task/thinking.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

/// The next turn of a dialog: free text up to the end that the model puts, or a JSON object. What stands
/// before the user's last text is shared by the dialogs that begin so.
class ChatTask : public WordedTask {
 public:
  explicit ChatTask(const TaskContext& context)
      : WordedTask(context), thinking_(make_thinking(context)), objects_(context) {
    auto bin = std::make_shared<BinParts>();
    bin->instruction = begin_text(tokenizer_);
    bin_ = std::move(bin);
  }

  std::string bin_name(const Record& record) const override { return record.object ? "objects" : "dialogs"; }

  RecordParts parts(const Record& record) override {
    RecordParts parts;
    parts.decoding = record.decoding;
    DialogPieces pieces = dialog_pieces(chat_, record.dialog);
    if (record.object) {
      parts.bin = objects_.parts(record);
      pieces.before.push_back({ObjectAnswer::instruction(*record.object), false});
      pieces.last.pop_back();  // the turn to the model opens the answer
      std::tie(parts.head, parts.document) = encode_both(pieces);
      return parts;
    }
    parts.bin = bin_;
    QuestionParts question;
    question.thinking = thinking_;
    if (thinking_) pieces.last.back() = {chat_.think.turn, true};
    std::tie(parts.document, question.tokens) = encode_both(pieces);
    if (question.tokens.empty())
      refuse("{} has no tokens for the prompt; use a model whose tokenizer covers its text",
             tokenizer_name(context_));
    question.max_tokens = job_.method.max_value_tokens;
    if (record.max_tokens > 0) question.max_tokens = std::min(question.max_tokens, record.max_tokens);
    question.stop = Stop::text;
    parts.own_questions.push_back(std::move(question));
    return parts;
  }

  Row row(const Record& record, const std::vector<Answer>& answers) const override {
    if (answers.empty()) return {record.id, no_answer()};
    if (record.object) return {record.id, objects_.read(*record.object, answers)};
    const Answer& answer = answers[0];
    const ThoughtAnswer said =
        thinking_ ? split_thought(*thinking_, answer.tokens) : ThoughtAnswer{{}, answer.tokens};
    std::string text = tokenizer_.decode(said.answer);
    size_t end = text.size();
    if (record.decoding)
      for (const std::string& stop : record.decoding->stops) end = std::min(end, text.find(stop));
    text.resize(end);
    RowAnswer out{valid_utf8(text)};
    out.finish = answer.ending == Ending::length ? Finish::length : Finish::stop;
    note_thought(said, out);
    if (job_.output.logprobs) out.logprob = answer.logprob;
    if (job_.output.raw) out.raw = valid_utf8(tokenizer_.decode(answer.tokens, false));
    return {record.id, std::move(out)};
  }

 private:
  /// The tokens of both parts, which are together those of the whole text; the second has one at least.
  std::pair<Tokens, Tokens> encode_both(DialogPieces& pieces) const {
    Tokens before, whole;
    tokenizer_.encode_pieces(pieces.before, before);
    std::move(pieces.last.begin(), pieces.last.end(), std::back_inserter(pieces.before));
    tokenizer_.encode_pieces(pieces.before, whole);
    // A token across the border goes to the second part.
    auto cut = std::mismatch(before.begin(), before.end(), whole.begin(), whole.end()).second;
    if (cut == whole.end() && cut != whole.begin()) --cut;
    return {Tokens(whole.begin(), cut), Tokens(cut, whole.end())};
  }

  std::shared_ptr<const BinParts> bin_;
  std::shared_ptr<const Thinking> thinking_;  ///< of free texts; null: they do not
  ObjectAnswer objects_;
};

}  // namespace

std::unique_ptr<Task> make_chat_task(const TaskContext& context) {
  return std::make_unique<ChatTask>(context);
}

}  // namespace sheaf
