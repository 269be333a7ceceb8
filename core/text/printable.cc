#include "core/text/printable.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/text/utf8.h"

namespace sheaf {

bool is_hidden(uint32_t point) {
  return point < 0x20 || (point >= 0x7F && point <= 0x9F) || point == 0x061C || point == 0x200E ||
         point == 0x200F || (point >= 0x2028 && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069) ||
         point == 0xFEFF;
}

namespace {

std::string escape(uint32_t point) {
  if (point == '\n') return "\\n";
  if (point == '\t') return "\\t";
  if (point == '\r') return "\\r";
  return point < 0x80 ? fmt::format("\\x{:02x}", point) : fmt::format("\\u{:04x}", point);
}

/// Every character by `hidden`, where it is not to be seen as it is, and every byte of none by `broken`.
template <class Hidden, class Broken>
std::string rewritten(std::string_view text, Hidden hidden, Broken broken) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t valid = valid_prefix(text);
    for (size_t at = 0; at < valid;) {
      const Decoded next = decode_valid(text.data() + at);
      if (is_hidden(next.point))
        out += hidden(next.point);
      else
        out.append(text.substr(at, next.bytes));
      at += next.bytes;
    }
    if (valid < text.size()) out += broken(static_cast<unsigned char>(text[valid]));
    text.remove_prefix(std::min(valid + 1, text.size()));
  }
  return out;
}

std::string byte_text(unsigned char byte) {
  return fmt::format("\\x{:02x}", byte);
}

}  // namespace

std::string printable_text(std::string_view text) {
  const auto hidden = [](uint32_t point) {
    return point == '\n' || point == '\t' ? std::string(1, static_cast<char>(point)) : escape(point);
  };
  return rewritten(text, hidden, byte_text);
}

std::string printable_line(std::string_view text) {
  return rewritten(text, escape, byte_text);
}

std::string printable_json(std::string_view json) {
  // Below U+0020 there can only be the blanks between values.
  const auto hidden = [](uint32_t point) {
    return point < 0x20 ? std::string(1, static_cast<char>(point)) : fmt::format("\\u{:04x}", point);
  };
  return rewritten(json, hidden, [](unsigned char) { return "\uFFFD"; });
}

}  // namespace sheaf
