#include "core/task/choices.h"

#include <algorithm>
#include <map>

#include "core/base/error.h"
#include "core/task/prompt_text.h"

namespace sheaf {
namespace {

// Every option costs tokens of its own: among more, the trie is walked.
constexpr size_t kMostScored = 32;
constexpr std::string_view kFix = "use a model whose tokenizer covers this text";

/// What ends an answer that another one goes on from: the line break, else the end of the text.
std::optional<TokenId> stop_token(const Tokenizer& tokenizer) {
  const Tokens line_break = encode_part(tokenizer, "\n");
  return line_break.empty() ? tokenizer.eos : line_break.back();
}

}  // namespace

std::string tokenizer_name(const TaskContext& context) {
  const std::string& path = context.job.model.path;
  return fmt::format("{}{} tokenizer ({})", path, path.empty() ? "the" : ": its",
                     context.tokenizer.describe());
}

void check_tokenizer(const TaskContext& context) {
  if (encode_part(context.tokenizer, "abcdefghijklmnopqrstuvwxyz").empty())
    refuse("{} has no token for any of the letters a to z, so no prompt can be made; {}",
           tokenizer_name(context), kFix);
}

std::shared_ptr<const AnswerTrie> make_choices(const TaskContext& context,
                                               const std::vector<std::string>& texts, bool scored) {
  std::vector<Tokens> answers;
  std::map<Tokens, const std::string*> known;
  for (const std::string& text : texts) {
    const Tokens& answer = answers.emplace_back(encode_part(context.tokenizer, text));
    if (answer.empty()) refuse("{} has no tokens for the answer{}; {}", tokenizer_name(context), text, kFix);
    const auto [at, added] = known.try_emplace(answer, &text);
    if (!added)
      refuse("{} gives the answers{} and{} the same tokens; {}", tokenizer_name(context), *at->second, text,
             kFix);
  }
  const std::optional<TokenId> stop = stop_token(context.tokenizer);
  // In order, a text stands right before one that goes on from it, if there is any.
  for (auto at = known.begin(); !stop && at != known.end(); ++at)
    if (const auto after = std::next(at);
        after != known.end() && after->first.size() > at->first.size() &&
        std::equal(at->first.begin(), at->first.end(), after->first.begin()))
      refuse(
          "{} has no token for a line break or the end of a text, so the answer{} cannot be distinguished "
          "from{}; {}",
          tokenizer_name(context), *at->second, *after->second, kFix);
  return std::make_shared<AnswerTrie>(std::move(answers), stop.value_or(-1), scored);
}

bool is_chosen(const Attribute& attribute) {
  return attribute.type == ValueType::enumeration || attribute.type == ValueType::boolean;
}

void add_choices(const TaskContext& context, const Attribute& attribute, bool nullable, bool scored,
                 QuestionParts& question) {
  const bool bare = attribute.type == ValueType::boolean;  // true and false have no quotes
  std::vector<std::string> answers;
  for (const std::string& option : attribute.options)
    answers.push_back(" " + (bare ? option : nlohmann::json(option).dump()));
  if (nullable) answers.emplace_back(" null");
  question.allowed = make_choices(context, answers, scored && answers.size() <= kMostScored);
  question.max_tokens = std::max(question.max_tokens, question.list()->longest());
}

}  // namespace sheaf
