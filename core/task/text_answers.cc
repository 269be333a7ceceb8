#include "core/task/text_answers.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/text/printable.h"
#include "core/text/unicode.h"
#include "core/text/utf8.h"

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

constexpr std::string_view kAfterClosing = ",} \t\r\n";

/// The letter A to Z with the other case; none for other bytes.
std::optional<char> other_case(char c) {
  const char low = static_cast<char>(c | 0x20);
  return low >= 'a' && low <= 'z' ? std::optional(static_cast<char>(c ^ 0x20)) : std::nullopt;
}

/// Whether the tokens of "a" in quotes are a copy of the document a.
bool can_copy(const std::shared_ptr<const TokenSpelling>& tokens, const Tokens& quoted) {
  const SpanAnswers answers(tokens, "a", 0, 1);
  SpanAnswers::Node node = SpanAnswers::root;
  for (const TokenId token : quoted) {
    if (node < 0 || !std::ranges::binary_search(answers.allowed(node), token)) return false;
    node = answers.advance(node, token);
  }
  return node < 0;
}

/// Joiners of width zero, and selectors of variants.
bool joins_characters(char32_t point) {
  return (point >= 0x200B && point <= 0x200D) || point == 0x2060 || (point >= 0xFE00 && point <= 0xFE0F);
}

/// Whether a value may begin with the character at byte `at`. Punctuation may only where it belongs to what
/// follows it: "#3", "-20", "(large", but not ", sea salt" and not the "-oz" of "12-oz".
bool may_begin_value(std::string_view document, size_t at) {
  constexpr int kOfWord = CharClass::is_letter | CharClass::is_number | CharClass::is_mark;
  const auto [point, bytes] = decode_valid(document.data() + at);
  if (is_hidden(point) || joins_characters(point)) return false;
  if (!(char_classes()[point] & CharClass::is_punct) && point != '|') return true;
  if (std::string_view(",;:!?)]}|").find(document[at]) != std::string_view::npos) return false;
  if (at + bytes == document.size() || is_space_character(decode_valid(document.data() + at + bytes).point))
    return false;
  if (at == 0) return true;
  size_t before = at - 1;
  while (inside_character(document[before])) --before;
  return !(char_classes()[decode_valid(document.data() + before).point] & kOfWord);
}

bool is_punctuation(uint32_t point) {
  return (char_classes()[point] & CharClass::is_punct) || point == '|';
}

/// Whether the run of punctuation that ends before byte `at` belongs to what follows it; false where there is
/// no such run.
bool run_opens(std::string_view document, size_t at) {
  size_t begin = at;
  while (begin > 0) {
    const size_t before = character_before(document, begin);
    if (!is_punctuation(decode_valid(document.data() + before).point)) break;
    begin = before;
  }
  return begin < at && may_begin_value(document, begin);
}

}  // namespace

bool may_end_value(std::string_view document, size_t at) {
  return splits_words(document, at) && !run_opens(document, at);
}

bool can_decode(const Pattern& pattern) {
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
  for (const char letter : spelling_->bytes.of(token)) {
    node = after(node, letter);
    if (node == kNowhere) fail("token {} does not continue a text that matches {}", token, name_);
  }
  return node;
}

std::shared_ptr<const PatternAnswers> PatternForms::find(const Pattern& pattern, PatternAnswers::Form form) {
  if (!spelling_) spelling_ = std::make_shared<TokenSpelling>(tokenizer_);
  if (forms_.size() >= kMostForms) forms_.clear();
  const auto [found, added] = forms_.try_emplace(name_of(pattern, form));
  if (added) found->second = PatternAnswers::make(spelling_, pattern, form);
  return found->second;
}

std::shared_ptr<const TokenSpelling> make_span_tokens(const TaskContext& context) {
  auto tokens = std::make_shared<TokenSpelling>(context.tokenizer);
  if (tokens->null.empty() || !can_copy(tokens, encode_part(context.tokenizer, " \"a\"")))
    refuse("{} has no tokens for null or a text in quotes; use a model whose tokenizer covers them",
           tokenizer_name(context));
  return tokens;
}

std::shared_ptr<const TokenSpelling> make_bare_span_tokens(const TaskContext& context, Tokens null,
                                                           bool spaced) {
  auto tokens = std::make_shared<TokenSpelling>(context.tokenizer);
  tokens->null = std::move(null);
  tokens->spaced = spaced;
  TokenTrie::Node line_break = tokens->trie.child(TokenTrie::root, '\n');
  for (; line_break != TokenTrie::none; line_break = tokens->trie.child(line_break, '\n'))
    for (const TokenId token : tokens->trie.tokens(line_break)) tokens->closers.push_back(token);
  for (const TokenId token : context.tokenizer.end_tokens) tokens->closers.push_back(token);
  std::ranges::sort(tokens->closers);
  tokens->closers.erase(std::ranges::unique(tokens->closers).begin(), tokens->closers.end());
  if (tokens->null.empty() || tokens->closers.empty() ||
      encode_part(context.tokenizer, spaced ? " a" : "a").empty())
    refuse(
        "{} has no tokens for null, a letter or the end of an answer; use a model whose tokenizer covers "
        "them",
        tokenizer_name(context));
  return tokens;
}

std::vector<size_t> token_places(const TokenSpelling& spelling, std::string_view text,
                                 std::span<const TokenId> tokens) {
  std::vector<size_t> places{0};
  for (const TokenId token : tokens) {
    const std::string_view left = text.substr(places.back());
    std::string added = spelling.bytes.of(token);
    added.resize(std::min(added.size(), left.size()));  // a line break may end the last token
    if (!left.starts_with(added)) break;
    places.push_back(places.back() + added.size());
  }
  return places;
}

SpanAnswers::SpanAnswers(std::shared_ptr<const TokenSpelling> tokens, std::string_view document, size_t begin,
                         size_t end)
    : tokens_(std::move(tokens)) {
  write_text(document, begin, end);
  find_dead_ends();
  find_state({kStart});
  // The longest lists, which every answer needs: made here, outside of the decode loop.
  expanded(root);
  if (quoted()) expanded(find_state({kOpen}));
}

void SpanAnswers::write_text(std::string_view document, size_t begin, size_t end) {
  const auto is_inside = [&](size_t at) { return at < document.size() && inside_character(document[at]); };
  while (is_inside(begin)) ++begin;
  while (is_inside(end)) --end;
  bool after_text = false;  // the last character is one that a value may end with
  bool in_run =
      begin > 0 && is_punctuation(decode_valid(document.data() + character_before(document, begin)).point);
  bool opens = in_run && run_opens(document, begin);  // the run of punctuation belongs to what follows it
  for (size_t at = begin; at < end;) {
    const auto [point, bytes] = decode_valid(document.data() + at);
    const bool line_end = point < 0x20, space = is_space_character(point);
    const bool word = splits_words(document, at);
    if (word && !line_end && !space && may_begin_value(document, at)) starts_.push_back(text_.size());
    ends_.resize(text_.size() + 1);
    ends_[text_.size()] = word && after_text;
    if (quoted() && (point == '"' || point == '\\')) text_ += '\\';
    if (line_end)
      text_ += '\n';
    else
      text_ += document.substr(at, bytes);
    const bool punctuation = is_punctuation(point);
    if (punctuation && !in_run) opens = may_begin_value(document, at);
    in_run = punctuation;
    after_text = !line_end && !space && !(punctuation && opens);
    at += bytes;
  }
  ends_.resize(text_.size() + 1);
  ends_[text_.size()] = after_text && (end == document.size() || splits_words(document, end));
}

/// A tokenizer without byte tokens cannot spell every character.
void SpanAnswers::find_dead_ends() {
  leads_on_.assign(text_.size() + 1, true);
  Ways ways;
  for (size_t at = text_.size() + 1; at-- > 0;) {
    ways.clear();
    follow(TokenTrie::root, at, ways);
    leads_on_[at] = !ways.empty();
  }
  std::erase_if(starts_, [&](size_t start) {
    ways.clear();
    follow_from(TokenTrie::root, start, ways);
    return ways.empty();
  });
}

SpanAnswers::Node SpanAnswers::find_state(std::vector<At> places) const {
  const auto [found, added] = known_.try_emplace(std::move(places), static_cast<Node>(states_.size()));
  if (added) states_.push_back({found->first, {}, {}, {}});
  return found->second;
}

const SpanAnswers::State& SpanAnswers::expanded(Node node) const {
  State& state = states_[node];
  if (!state.tokens.empty()) return state;
  Ways ways;
  for (const At place : state.places) add_ways(place, ways);
  std::sort(ways.begin(), ways.end());
  ways.erase(std::unique(ways.begin(), ways.end()), ways.end());
  for (const auto& [token, next] : ways) {
    if (state.tokens.empty() || state.tokens.back() != token) {
      state.tokens.push_back(token);
      state.firsts.push_back(state.next.size());
    }
    state.next.push_back(next);
  }
  state.firsts.push_back(state.next.size());
  return state;
}

std::span<const TokenId> SpanAnswers::allowed(Node node) const {
  return expanded(node).tokens;
}

SpanAnswers::Node SpanAnswers::advance(Node node, TokenId token) const {
  const State& state = expanded(node);
  const auto at = std::lower_bound(state.tokens.begin(), state.tokens.end(), token);
  if (at == state.tokens.end() || *at != token) fail("token {} does not continue a copied text", token);
  const auto index = static_cast<size_t>(at - state.tokens.begin());
  std::vector<At> places(state.next.begin() + static_cast<ptrdiff_t>(state.firsts[index]),
                         state.next.begin() + static_cast<ptrdiff_t>(state.firsts[index + 1]));
  return std::ranges::find(places, kDone) != places.end() ? -1 : find_state(std::move(places));
}

void SpanAnswers::add_ways(At place, Ways& ways) const {
  if (place >= 0) return follow(TokenTrie::root, static_cast<size_t>(place), ways);
  const auto written = static_cast<size_t>(place <= kNull ? kNull - place : 0);
  if (place == kStart || place <= kNull)
    ways.emplace_back(tokens_->null[written],
                      written + 1 == tokens_->null.size() ? kDone : kNull - static_cast<At>(written) - 1);
  if (place <= kNull) return;
  if (!quoted()) return add_bare_ways(place, ways);
  TokenTrie::Node node = TokenTrie::root;
  if (place == kStart) {
    node = tokens_->trie.child(node, ' ');
    Ways after_space;
    add_ways(kSpace, after_space);
    if (!after_space.empty())
      for (const TokenId token : tokens_->trie.tokens(node)) ways.emplace_back(token, kSpace);
  }
  if (place != kOpen) {
    node = tokens_->trie.child(node, '"');
    if (!starts_.empty())
      for (const TokenId token : tokens_->trie.tokens(node)) ways.emplace_back(token, kOpen);
  }
  for (const size_t start : starts_) follow_from(node, start, ways);
}

/// Adds the ways on of a text without quotes, of which nothing stands yet.
void SpanAnswers::add_bare_ways(At place, Ways& ways) const {
  TokenTrie::Node node = TokenTrie::root;
  if (place == kStart && tokens_->spaced) {
    node = tokens_->trie.child(node, ' ');
    if (node == TokenTrie::none) return;
    Ways after_space;
    add_bare_ways(kSpace, after_space);
    if (!after_space.empty())
      for (const TokenId token : tokens_->trie.tokens(node)) ways.emplace_back(token, kSpace);
  }
  for (const size_t start : starts_) follow_from(node, start, ways);
}

/// The tokens that follow `text_` from byte `at`; `node` is where those before it in the token led.
void SpanAnswers::follow(TokenTrie::Node node, size_t at, Ways& ways) const {
  while (true) {
    if (node != TokenTrie::root && leads_on_[at])
      for (const TokenId token : tokens_->trie.tokens(node)) ways.emplace_back(token, static_cast<At>(at));
    if (ends_[at] && quoted()) add_closers(tokens_->trie.child(node, '"'), ways);
    if (ends_[at] && !quoted() && node == TokenTrie::root)
      for (const TokenId token : tokens_->closers) ways.emplace_back(token, kDone);
    if (at == text_.size() || text_[at] == '\n') return;
    const char c = text_[at++];
    if (const auto other = other_case(c))
      if (const auto next = tokens_->trie.child(node, *other); next != TokenTrie::none)
        follow(next, at, ways);
    node = tokens_->trie.child(node, c);
    if (node == TokenTrie::none) return;
  }
}

/// Adds the ways from a node that take at least one byte of the text.
void SpanAnswers::follow_from(TokenTrie::Node node, size_t start, Ways& ways) const {
  for (const auto c : {std::optional(text_[start]), other_case(text_[start])})
    if (const auto next = c ? tokens_->trie.child(node, *c) : TokenTrie::none; next != TokenTrie::none)
      follow(next, start + 1, ways);
}

void SpanAnswers::add_closers(TokenTrie::Node node, Ways& ways) const {
  if (node == TokenTrie::none) return;
  for (const TokenId token : tokens_->trie.tokens(node)) ways.emplace_back(token, kDone);
  for (const char c : kAfterClosing) add_closers(tokens_->trie.child(node, c), ways);
}

}  // namespace sheaf
