#include "core/task/prompt_text.h"

#include <algorithm>
#include <map>

#include "core/base/error.h"
#include "core/text/printable.h"

namespace sheaf {
namespace {

// Every option costs tokens of its own: among more, the trie is walked.
constexpr size_t kMostScored = 32;
constexpr std::string_view kFix = "use a model whose tokenizer covers this text";

/// What ends an answer that another one begins with: the line break, else the end of the text.
std::optional<TokenId> stop_token(const Tokenizer& tokenizer) {
  const Tokens line_break = encode_part(tokenizer, "\n");
  return line_break.empty() ? tokenizer.eos : line_break.back();
}

}  // namespace

Tokens encode_part(const Tokenizer& tokenizer, const TextPieces& pieces) {
  Tokens tokens;
  tokenizer.encode_pieces(pieces, tokens, true);
  return tokens;
}

Tokens encode_part(const Tokenizer& tokenizer, const std::string& text) {
  return encode_part(tokenizer, TextPieces{{text, false}});
}

Tokens begin_text(const Tokenizer& tokenizer) {
  return tokenizer.starts_with_bos && tokenizer.bos ? Tokens{*tokenizer.bos} : Tokens();
}

TextPieces instruction_pieces(const ChatTemplate& chat, const std::string& text,
                              const std::optional<std::string>& system) {
  TextPieces pieces;
  if (system && !system->empty()) {
    if (!chat.takes_system)
      refuse(
          "task.prompt.system: the chat template {} has no place for a system text; put it into "
          "task.prompt.instruction",
          chat.name);
    pieces = dialog_pieces(chat, {system, {""}}).before;
    pieces.push_back({text, false});
    return pieces;
  }
  pieces = chat_pieces(chat, system ? std::string_view() : chat.default_system, text);
  pieces.pop_back();  // the turn to the model comes after the question
  return pieces;
}

Tokens encode_instruction(const Tokenizer& tokenizer, const TextPieces& pieces) {
  Tokens tokens = begin_text(tokenizer);
  tokenizer.encode_pieces(pieces, tokens);
  return tokens;
}

std::optional<size_t> find_bad_seam(const Tokenizer& tokenizer, const std::vector<TextPieces>& parts) {
  Tokens apart, whole;
  TextPieces joined;
  for (size_t i = 0; i < parts.size(); ++i) {
    tokenizer.encode_pieces(parts[i], apart, i > 0);
    joined.insert(joined.end(), parts[i].begin(), parts[i].end());
    whole.clear();
    tokenizer.encode_pieces(joined, whole);
    if (apart != whole) return i - 1;
  }
  return std::nullopt;
}

Between share_out(const Tokenizer& tokenizer, const std::string& before, const std::string& between,
                  const std::string& after) {
  for (size_t i = 0; i <= between.size(); ++i) {
    Between shares{between.substr(0, i), between.substr(i)};
    if (!find_bad_seam(tokenizer, {{{before + shares.first, false}}, {{shares.second + after, false}}}))
      return shares;
  }
  return {"", between};
}

std::vector<std::string> seam_notices(const Tokenizer& tokenizer, const ChatTemplate& chat,
                                      const std::vector<TextPieces>& parts) {
  const std::optional<size_t> seam = find_bad_seam(tokenizer, parts);
  if (!seam) return {};
  constexpr size_t kShown = 12;
  const auto quoted = [](const std::string& text) { return '"' + printable_line(text) + '"'; };
  const auto text_of = [](const TextPieces& pieces) {
    std::string text;
    for (const TextPiece& piece : pieces) text += piece.text;
    return text;
  };
  const std::string before = text_of(parts[*seam]), after = text_of(parts[*seam + 1]);
  return {fmt::format(
      "the tokenizer joins {} and {} where sheaf tokenizes the parts of a prompt one by one (chat template "
      "{}), so the model reads tokens that it rarely saw in training; answers may be worse",
      quoted(before.substr(before.size() - std::min(before.size(), kShown))), quoted(after.substr(0, kShown)),
      chat.name)};
}

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

std::vector<SpokenPiece> trace_answer(const Tokenizer& tokenizer, const Answer& answer,
                                      std::span<const nlohmann::json> documents) {
  const std::span<const TokenId> tokens = answer.tokens;
  if (answer.voices.size() != tokens.size() || std::ranges::any_of(answer.voices, [&](int32_t voice) {
        return voice < 1 || std::cmp_greater(voice, documents.size());
      }))
    refuse("output.trace: a reused answer does not say which documents spoke it; run without reuse");
  const std::string text = tokenizer.decode(tokens);
  const size_t end = std::min(text.find_last_not_of("\r\n ") + 1, text.size());
  // Where the text of the first tokens ends: a character of several tokens belongs to its last one.
  const auto end_of = [&](size_t count) {
    const std::string first = tokenizer.decode(tokens.first(count));
    const auto [differs, ignored] = std::mismatch(first.begin(), first.end(), text.begin(), text.end());
    return std::min(static_cast<size_t>(differs - first.begin()), end);
  };
  std::vector<SpokenPiece> pieces;
  for (size_t i = 0, from = 0; i < tokens.size() && from < end; ++i) {
    const size_t to = end_of(i + 1);
    const auto& document = documents[static_cast<size_t>(answer.voices[i]) - 1];
    if (pieces.empty() || pieces.back().document != document) pieces.push_back({{}, document, 0});
    pieces.back().text += text.substr(from, to - from);
    ++pieces.back().tokens;
    from = to;
  }
  return pieces;
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
  // In order, a text stands right before one that begins with it, if there is any.
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

std::string span_trouble(const Wording& wording, std::string_view method) {
  if (!wording.one_by_one && wording.answers != AnswerForm::list) return {};
  return fmt::format(
      "an answer that is a span of its context does not work with method.name {}, which {}; use ippd, "
      "separate, prefix or standard",
      method,
      wording.one_by_one ? "reads documents one by one" : "decodes all answers of a record as one text");
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

bool asks_one_question(const Job& job) {
  return !job.input.question.empty() || (job.input.questions.empty() && job.task.prompt.question);
}

std::vector<WantedAnswer> Task::wanted(const Record&, const nlohmann::json&) const {
  refuse(
      "training data can be made for extract and ask jobs, with every method except pced, ape, map-reduce "
      "and seqbatch; choose another method.name");
}

bool has_same_document(const RecordParts& a, const RecordParts& b) {
  return a.document == b.document && a.head == b.head && a.bin->opening == b.bin->opening;
}

RecordParts ask_together(RecordParts record) {
  if (record.own_questions.size() < 2) return record;
  QuestionParts all = record.own_questions[0];
  for (size_t i = 1; i < record.own_questions.size(); ++i) {
    append(all.tokens, record.own_questions[i].tokens);
    all.max_tokens += record.own_questions[i].max_tokens;
  }
  all.allowed = nullptr;
  record.own_questions = {std::move(all)};
  return record;
}

}  // namespace sheaf
