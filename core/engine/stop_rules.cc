#include "core/engine/stop_rules.h"

#include <algorithm>
#include <string>

#include "core/text/json_parts.h"

namespace sheaf {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Whether the quote at `i` may be inside of the string that starts at `start`: "12" pipe". At the text's end
/// what follows decides.
bool is_inch_mark(std::string_view text, size_t start, size_t i) {
  if (i < start + 2 || !is_digit(text[i - 1])) return false;
  const size_t next = text.find_first_not_of(' ', i + 1);
  return next == std::string_view::npos
             ? i + 1 == text.size()
             : std::string_view(",}]\n").find(text[next]) == std::string_view::npos;
}

/// Whether the comma at `i` is inside of a number: 1,200. At the text's end what follows decides.
bool is_thousands_mark(std::string_view text, size_t start, size_t i) {
  return (is_digit(text[start]) || text[start] == '-') && is_digit(text[i - 1]) &&
         (i + 1 == text.size() || is_digit(text[i + 1]));
}

}  // namespace

StopRules::StopRules(const Tokenizer& tokenizer, int32_t vocab)
    : tokenizer_(&tokenizer), flags_(static_cast<size_t>(vocab), kEnd) {
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    const std::string text = tokenizer.decode(std::span(&id, 1));
    uint8_t& flags = flags_[id] = 0;
    if (text.find('\n') != std::string::npos) flags |= kNewline;
    if (text.find_first_of("\",]}") != std::string::npos) flags |= kMark;
    if (text.find('}') != std::string::npos) flags |= kBrace;
  }
  for (TokenId id : tokenizer.end_tokens) flags_[id] |= kEnd;
}

StopRules::StopRules(int32_t vocab, const Tokens& end_tokens) : flags_(static_cast<size_t>(vocab), 0) {
  for (TokenId id : end_tokens) flags_[id] |= kEnd;
}

bool StopRules::ends_answer(const Slot& slot, std::span<const TokenId> tokens) const {
  if (slot.last >= 0 && tokens.back() == slot.last) return true;
  return ends_form(slot.stop, tokens) || (slot.decoding && ends_with_stop(slot.decoding->stops, tokens));
}

bool StopRules::ends_form(Stop stop, std::span<const TokenId> tokens) const {
  if (stop == Stop::text) return false;
  const uint8_t flags = flags_[tokens.back()];
  if (stop != Stop::object && (flags & kNewline)) return true;
  if (stop == Stop::line) return false;
  if (stop == Stop::value || stop == Stop::quoted) {
    // What follows a mark may decide whether it was the end.
    const uint8_t before = tokens.size() > 1 ? flags_[tokens[tokens.size() - 2]] : 0;
    if (!((flags | before) & kMark)) return false;
    const std::string opened = stop == Stop::quoted ? "\"" : "";
    return literal_end(opened + tokenizer_->decode(tokens)) != std::string::npos;
  }
  return (flags & kBrace) && object_end(tokenizer_->decode(tokens)) != std::string::npos;
}

bool StopRules::ends_with_stop(const std::vector<std::string>& stops, std::span<const TokenId> tokens) const {
  if (stops.empty() || !tokenizer_) return false;
  size_t longest = 0;
  for (const std::string& stop : stops) longest = std::max(longest, stop.size());
  // A token has a byte at least. Some decoders drop the space that a text begins with, so one more is read.
  const std::string end = tokenizer_->decode(tokens.last(std::min(tokens.size(), longest + 1)));
  return std::ranges::any_of(stops,
                             [&](const std::string& stop) { return end.find(stop) != std::string::npos; });
}

size_t literal_end(std::string_view text) {
  const size_t start = text.find_first_not_of(' ');
  int depth = 0;
  bool quoted = false;
  for (size_t i = start; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"' && (depth > 0 || !is_inch_mark(text, start, i))) {
        quoted = false;
        if (depth == 0) return i + 1;
      }
    } else if (c == '"') {
      // Only a literal that starts with a quote is a string; elsewhere a quote is just a character.
      quoted = depth > 0 || i == start;
    } else if (c == '[') {
      ++depth;
    } else if (c == ']') {
      if (--depth <= 0) return i + 1;
    } else if ((c == ',' && depth == 0 && !is_thousands_mark(text, start, i)) || c == '}' || c == '\n') {
      return i;
    }
  }
  return std::string_view::npos;
}

size_t object_end(std::string_view text) {
  // Braces alone count: what a model wrote may have a bracket too many.
  int depth = 1;
  size_t end = std::string_view::npos;
  scan_unquoted(text, [&](size_t i) {
    if (text[i] == '{') ++depth;
    if (text[i] == '}' && --depth == 0) end = i + 1;
    return depth > 0;
  });
  return end;
}

}  // namespace sheaf
