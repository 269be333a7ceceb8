#include "core/task/own_prompt.h"

#include <tuple>

#include "core/base/error.h"

namespace sheaf {
namespace {

constexpr std::string_view kOwnSpace = " \t\n";
constexpr std::string_view kBlankLine = "\n\n";
constexpr std::string_view kSomeText = "A text.", kSomeQuestion = "Question: ";

std::optional<PromptTemplate> read_template(const std::optional<std::string>& text) {
  return text ? std::optional<PromptTemplate>(*text) : std::nullopt;
}

std::string without_end(std::string text) {
  text.erase(text.find_last_not_of(kOwnSpace) + 1);
  return text;
}

/// The literal text next to a border, or a usual one.
std::string or_usual(std::string text, std::string_view usual) {
  return text.empty() ? std::string(usual) : text;
}

/// The space before a document, as much of it as can be in the part before, which prompts share.
Between share_early(const Tokenizer& tokenizer, const std::string& before, const std::string& space) {
  for (size_t i = space.size() + 1; i-- > 0;) {
    const Between shares{space.substr(0, i), space.substr(i)};
    const std::string after = shares.second + std::string(kSomeText);
    if (!find_bad_seam(tokenizer, {{{before + shares.first, false}}, {{after, false}}})) return shares;
  }
  return {space, ""};
}

}  // namespace

OwnPrompt::OwnPrompt(const Tokenizer& tokenizer, const Job::Task::Prompt& prompt, const BuiltIn& built_in)
    : system_(read_template(prompt.system)),
      instruction_(read_template(prompt.instruction)),
      question_(read_template(prompt.question)),
      example_(read_template(prompt.example)),
      has_document_(prompt.document.has_value()),
      apart_(built_in.apart),
      labels_(built_in.labels),
      shots_(prompt.shots) {
  PromptTemplate document(prompt.document.value_or("{document}"));
  if (!labels_) document = document.with("number", "1");
  holds_text_ = document.has("document");
  std::tie(before_, after_) = document.split("document");
  if (!holds_text_) std::swap(before_, after_);
  apart_ = apart_ || (!labels_ && !before_.fields().empty());
  if (!apart_ && !labels_) {
    const std::string space = before_.take_last_space();
    lead_ = share_early(tokenizer, or_usual(before_.last_text(), kSomeText), space);
  }
  answer_has_space_ = built_in.answer_has_space && !(question_ && question_->ends_with_space());
  if (!built_in.asks && !question_) return;  // nothing follows the document
  std::string space = after_.take_last_space();
  if (question_) space += question_->take_first_space();
  if (!has_document_ || !question_) space = kBlankLine;
  between_ = share_out(tokenizer, or_usual(after_.last_text(), kSomeText), space,
                       or_usual(question_ ? question_->first_text() : "", kSomeQuestion));
}

std::optional<std::string> OwnPrompt::system(const Values& value_of) const {
  return system_ ? std::optional(system_->fill(value_of)) : std::nullopt;
}

std::string OwnPrompt::instruction(const Values& value_of) const {
  return instruction_->fill(value_of) + shots_;
}

std::string OwnPrompt::head(std::string instruction, std::string_view heading) const {
  if (!has_document_ || !instruction_) instruction = without_end(std::move(instruction));
  if (!has_document_) return instruction + std::string(heading);
  if (!instruction_) instruction += kBlankLine;
  return instruction + before_document();
}

void OwnPrompt::check_head(const Tokens& instruction) const {
  if (instruction_ && instruction.empty())
    refuse("task.prompt: nothing stands before the document; give task.prompt.instruction a text");
}

std::pair<std::string, std::string> OwnPrompt::label(size_t number) const {
  const auto value_of = [&](std::string_view) { return std::to_string(number); };
  return {before_.fill(value_of), after_.fill(value_of) + between_.first};
}

std::string OwnPrompt::document(const Record& record, const std::string& text) const {
  if (labels_) return text;
  const auto value_of = [&](std::string_view field) {
    return field == "category" && !record.category.empty() ? record.category : field_of(record, field);
  };
  return (apart_ ? before_.fill(value_of) : lead_.second) + (holds_text_ ? text : "") +
         after_.fill(value_of) + between_.first;
}

std::string OwnPrompt::question(const Values& value_of) const {
  return between_.second + question_->fill(value_of);
}

std::string without_line_end(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return std::string(text);
}

std::string field_of(const Record& record, std::string_view field) {
  const auto found = record.fields.find(field);
  return found == record.fields.end() ? std::string() : found->second;
}

std::string options_text(const std::vector<std::string>& options) {
  std::string text;
  for (size_t i = 0; i < options.size(); ++i)
    text += (i == 0 ? "" : "\n") + option_letter(i) + ") " + options[i];
  return text;
}

TextPieces pieces_before(ChatTemplate chat, const std::optional<std::string>& system, std::string before,
                         const std::string& next, std::span<const ShownTurn> shown) {
  if (shown.empty()) return instruction_pieces(chat, before, system);
  Dialog dialog;
  if (system == "") chat.default_system.clear();
  if (system && !system->empty()) dialog.system = system;
  for (const ShownTurn& turn : shown) {
    dialog.turns.push_back(before + turn.asked);
    dialog.turns.push_back(turn.answer);
    before = next;
  }
  dialog.turns.emplace_back();
  TextPieces pieces = dialog_pieces(chat, dialog).before;
  pieces.push_back({std::move(before), false});
  return pieces;
}

}  // namespace sheaf
