#include "core/tokenizer/byte_bpe.h"

#include <limits>

#include "core/base/error.h"
#include "core/text/unicode.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

// GPT-2's alphabet: printable Latin-1 bytes stand for themselves, the rest follow from U+0100 in order.
constexpr bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr std::array<int16_t, 0x144> alphabet = [] {
  std::array<int16_t, 0x144> table{};
  for (int16_t& entry : table) entry = -1;
  size_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte)
    table[stands_for_itself(byte) ? static_cast<size_t>(byte) : next++] = static_cast<int16_t>(byte);
  return table;
}();

}  // namespace

int byte_of_char(uint32_t point) {
  return point < alphabet.size() ? alphabet[point] : -1;
}

std::optional<std::string> bytes_of_spelling(std::string_view spelling) {
  std::string bytes;
  bytes.reserve(spelling.size());
  for (size_t at = 0; at < spelling.size();) {
    const Decoded d = decode_valid(spelling.data() + at);
    const int byte = byte_of_char(d.point);
    if (byte < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(byte));
    at += d.bytes;
  }
  return bytes;
}

ByteBpe::ByteBpe(ByteBpeParts parts)
    : SplittingTokenizer(std::move(parts.vocabulary), std::move(parts.added)), parts_(std::move(parts)) {
  for (size_t byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    byte_tokens_[byte] = vocabulary().find_id({&c, 1});
  }
}

void ByteBpe::encode_gap(std::string_view gap, Before, Tokens& out) const {
  if (gap.size() > std::numeric_limits<int32_t>::max())
    refuse("a text of {} bytes is too long to tokenize", gap.size());
  scratch_.lend([&](Scratch& scratch) {
    std::string_view text = parts_.nfc ? normalize_nfc(gap, scratch.normalized) : gap;
    if (parts_.space_in_front && text.front() != ' ') text = scratch.spaced.assign(1, ' ').append(text);
    parts_.words.split(text, scratch.ends, scratch.spare);
    size_t begin = 0;
    for (const size_t end : scratch.ends) {
      const std::string_view word = text.substr(begin, end - begin);
      begin = end;
      scratch.cache.append(word, out, [&] { encode_word(word, scratch, out); });
    }
  });
}

void ByteBpe::encode_word(std::string_view word, Scratch& scratch, Tokens& out) const {
  if (parts_.whole_words_first) {
    if (const TokenId id = vocabulary().find_id(word); id >= 0) {
      out.push_back(id);
      return;
    }
  }
  Tokens& symbols = scratch.symbols;
  symbols.clear();
  bool after_unknown = false;
  for (const char c : word) {
    const TokenId id = byte_tokens_[static_cast<unsigned char>(c)];
    if (id >= 0) {
      symbols.push_back(id);
    } else if (parts_.unknown && !(parts_.fuse_unknown && after_unknown)) {
      symbols.push_back(*parts_.unknown);
    }
    after_unknown = id < 0;
  }
  merge_all(parts_.merges, symbols, scratch.merge);
  out.insert(out.end(), symbols.begin(), symbols.end());
}

std::string ByteBpe::describe() const {
  const std::string& name = parts_.words.name;
  return fmt::format("byte-level BPE ({}), {} tokens", name.empty() ? "whole text" : name, vocab_size());
}

}  // namespace sheaf
