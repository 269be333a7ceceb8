#include "core/task/pattern_answers.h"

#include <algorithm>

#include "core/base/error.h"

namespace sheaf {
namespace {

constexpr std::string_view kWord = "null";
constexpr std::string_view kEscaped = "\"\\";  // in a JSON string
constexpr std::string_view kAfterQuote = ",} \t\r\n", kAfterBare = ",}\n";
constexpr size_t kMostForms = 1000;

std::string name_of(const Pattern& pattern, PatternAnswers::Form form) {
  return fmt::format("{}{}{}", form.quoted ? "quoted " : "bare ", form.nullable ? "or null " : "",
                     pattern.text());
}

}  // namespace

bool PatternAnswers::has_form(const Pattern& pattern) {
  return make_pattern_table(pattern, kEscaped).has_value();
}

std::shared_ptr<const PatternAnswers> PatternAnswers::make(std::shared_ptr<const TokenSpelling> spelling,
                                                           const Pattern& pattern, Form form) {
  auto table = make_pattern_table(pattern, kEscaped);
  if (!table) return nullptr;
  for (char letter = 0x20; letter < 0x7f; ++letter) {
    const TokenTrie::Node node = spelling->trie.child(TokenTrie::root, letter);
    if (node == TokenTrie::none || spelling->trie.tokens(node).empty()) return nullptr;
  }
  return std::make_shared<PatternAnswers>(std::move(spelling), std::move(*table), form,
                                          name_of(pattern, form));
}

PatternAnswers::PatternAnswers(std::shared_ptr<const TokenSpelling> spelling, PatternTable table, Form form,
                               std::string name)
    : spelling_(std::move(spelling)),
      table_(std::move(table)),
      form_(form),
      name_(std::move(name)),
      tokens_(kText + table_.next.size()) {}

PatternAnswers::Node PatternAnswers::after(Node node, char letter) const {
  const std::string_view closing = form_.quoted ? kAfterQuote : kAfterBare;
  if (node == kDone) return closing.find(letter) == std::string_view::npos ? kNowhere : kDone;
  if (node == root && letter == ' ') return kSpace;
  if (node >= kNull && node < kText) {
    const auto written = static_cast<size_t>(node - kNull + 1);
    if (letter != kWord[written]) return kNowhere;
    return written + 1 == kWord.size() ? kDone : node + 1;
  }
  int16_t state = 0;
  if (node >= kText) {
    state = static_cast<int16_t>(node - kText);
    const bool closes = form_.quoted ? letter == '"' : closing.find(letter) != std::string_view::npos;
    if (closes && table_.accepts[state]) return kDone;
  } else {
    if (form_.nullable && letter == kWord[0]) return kNull;
    if (form_.quoted) return letter == '"' ? kText : kNowhere;
  }
  const int16_t next = table_.after(state, letter);
  return next == PatternTable::kNowhere ? kNowhere : kText + next;
}

PatternAnswers::Node PatternAnswers::follow(Node node, std::string_view text) const {
  for (const char letter : text) {
    if (node == kNowhere) break;
    node = after(node, letter);
  }
  return node;
}

void PatternAnswers::add_tokens(TokenTrie::Node at, Node node, Tokens& tokens) const {
  for (int letter = 0; letter < 0x7f; ++letter) {
    const TokenTrie::Node child = spelling_->trie.child(at, static_cast<char>(letter));
    if (child == TokenTrie::none) continue;
    const Node next = after(node, static_cast<char>(letter));
    if (next == kNowhere) continue;
    const auto spelled = spelling_->trie.tokens(child);
    tokens.insert(tokens.end(), spelled.begin(), spelled.end());
    add_tokens(child, next, tokens);
  }
}

std::span<const TokenId> PatternAnswers::allowed(Node node) const {
  const std::lock_guard lock(mutex_);
  Tokens& tokens = tokens_[node];
  if (tokens.empty()) {
    add_tokens(TokenTrie::root, node, tokens);
    std::ranges::sort(tokens);
  }
  return tokens;
}

PatternAnswers::Node PatternAnswers::advance(Node node, TokenId token) const {
  const Node next = follow(node, spelling_->bytes.of(token));
  if (next == kNowhere) fail("token {} does not continue a text that matches {}", token, name_);
  return next;
}

std::shared_ptr<const PatternAnswers> PatternForms::find(const Pattern& pattern, PatternAnswers::Form form) {
  if (!spelling_) spelling_ = std::make_shared<TokenSpelling>(tokenizer_);
  if (forms_.size() >= kMostForms) forms_.clear();
  const auto [found, added] = forms_.try_emplace(name_of(pattern, form));
  if (added) found->second = PatternAnswers::make(spelling_, pattern, form);
  return found->second;
}

}  // namespace sheaf
