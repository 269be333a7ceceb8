#include "core/engine/stop_rules.h"

#include <string>

namespace sheaf {

const char* ending_name(Ending ending) {
  switch (ending) {
    case Ending::end_of_text:
      return "end of text";
    case Ending::delimiter:
      return "delimiter";
    case Ending::chosen:
      return "chosen";
    case Ending::length:
      return "length";
  }
  return "?";
}

StopRules::StopRules(const Tokenizer& tokenizer, int32_t vocab)
    : tokenizer_(&tokenizer), flags_(static_cast<size_t>(vocab), kEnd) {
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    const std::string text = tokenizer.decode(std::span(&id, 1));
    uint8_t& flags = flags_[static_cast<size_t>(id)] = 0;
    if (text.find('\n') != std::string::npos) flags |= kNewline;
    if (text.find_first_of("\",]}") != std::string::npos) flags |= kMark;
    if (text.find('}') != std::string::npos) flags |= kBrace;
  }
  for (TokenId id : tokenizer.end_tokens) flags_[static_cast<size_t>(id)] |= kEnd;
}

StopRules::StopRules(int32_t vocab, const Tokens& end_tokens) : flags_(static_cast<size_t>(vocab), 0) {
  for (TokenId id : end_tokens) flags_[static_cast<size_t>(id)] |= kEnd;
}

bool StopRules::ends_answer(Stop stop, std::span<const TokenId> tokens) const {
  if (stop == Stop::text) return false;
  const uint8_t flags = flags_[static_cast<size_t>(tokens.back())];
  if (stop != Stop::object && (flags & kNewline)) return true;
  if (stop == Stop::line) return false;
  if (stop == Stop::value)
    return (flags & kMark) && literal_end(tokenizer_->decode(tokens)) != std::string::npos;
  return (flags & kBrace) && object_end(tokenizer_->decode(tokens)) != std::string::npos;
}

size_t literal_end(std::string_view text) {
  const size_t start = text.find_first_not_of(' ');
  int depth = 0;
  bool quoted = false;
  for (size_t i = start; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
      if (c == '"' && depth == 0) return i + 1;
    } else if (c == '"') {
      // Only a literal that starts with a quote is a string; elsewhere a quote is just a character.
      quoted = depth > 0 || i == start;
    } else if (c == '[') {
      ++depth;
    } else if (c == ']') {
      if (--depth <= 0) return i + 1;
    } else if ((c == ',' && depth == 0) || c == '}' || c == '\n') {
      return i;
    }
  }
  return std::string_view::npos;
}

size_t object_end(std::string_view text) {
  int depth = 1;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

}  // namespace sheaf
