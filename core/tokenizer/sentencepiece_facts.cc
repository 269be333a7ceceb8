#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "core/tokenizer/sentencepiece_model.h"

namespace sheaf {
namespace {

// Walks the fields of a protocol buffer message.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : bytes_(bytes) {}

  /// Moves to the next field; false at the end or where the bytes make no sense (then broken() is true).
  bool next() {
    if (bytes_.empty() || broken_) return false;
    const auto tag = varint();
    if (!tag) return fail();
    number = *tag >> 3;
    text = {};
    value = 0;
    switch (*tag & 7) {
      case 0: {
        const auto v = varint();
        if (!v) return fail();
        value = *v;
        return true;
      }
      case 1:
        return skip(8);
      case 2: {
        const auto length = varint();
        if (!length || *length > bytes_.size()) return fail();
        text = bytes_.substr(0, static_cast<size_t>(*length));
        return skip(text.size());
      }
      case 5: {
        if (bytes_.size() < 4) return fail();
        std::memcpy(&single, bytes_.data(), 4);
        return skip(4);
      }
      default:
        return fail();
    }
  }
  bool broken() const { return broken_; }

  uint64_t number = 0;
  uint64_t value = 0;
  float single = 0;
  std::string_view text;

 private:
  bool fail() {
    broken_ = true;
    return false;
  }
  bool skip(size_t count) {
    if (count > bytes_.size()) return fail();
    bytes_.remove_prefix(count);
    return true;
  }
  std::optional<uint64_t> varint() {
    uint64_t v = 0;
    for (int shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      v |= uint64_t{byte & 0x7Fu} << shift;
      if (!(byte & 0x80)) return v;
    }
    return std::nullopt;
  }

  std::string_view bytes_;
  bool broken_ = false;
};

// The library walks a normalizer's character map without looking at its bounds; this does. The map is the
// size of a double-array trie in bytes, the trie's 32-bit units, and the replacement texts, each ending in a
// zero byte.
bool is_sound_charsmap(std::string_view map) {
  uint32_t trie_bytes = 0;
  if (map.size() < 4) return false;
  std::memcpy(&trie_bytes, map.data(), 4);
  if (trie_bytes % 4 != 0 || trie_bytes < 1024 || trie_bytes >= map.size() - 4) return false;
  std::vector<uint32_t> units(trie_bytes / 4);
  std::memcpy(units.data(), map.data() + 4, trie_bytes);
  const size_t texts = map.size() - 4 - trie_bytes;
  if (map.back() != '\0') return false;
  for (size_t i = 0; i < units.size(); ++i) {
    const uint32_t unit = units[i];
    if (unit >> 31) continue;  // a leaf: never walked from
    const size_t base = i ^ static_cast<size_t>((unit >> 10) << ((unit & 0x200) >> 6));
    if ((base | 0xFF) >= units.size()) return false;
    const bool has_leaf = unit >> 8 & 1;
    if (has_leaf && (units[base] & 0x7FFFFFFF) >= texts) return false;
  }
  return true;
}

}  // namespace

// ModelProto: pieces = 1 (type = 3, user-defined = 4, unused = 5), trainer_spec = 2 (model_type = 3, BPE = 2;
// treat_whitespace_as_suffix = 24), normalizer_spec = 3 (precompiled_charsmap = 2, add_dummy_prefix = 3,
// remove_extra_whitespaces = 4, escape_whitespaces = 5).
SentencePieceFacts sentencepiece_facts(std::string_view model) {
  SentencePieceFacts facts;
  bool charsmap = false, suffix = false, front = true, removes = true, escapes = true, pieces = false,
       plain = true;
  Fields top(model);
  while (top.next()) {
    if (top.number == 1) {
      pieces = true;
      Fields piece(top.text);
      while (piece.next()) {
        if (piece.number == 2 && !std::isfinite(piece.single)) return {};
        if (piece.number == 3 && (piece.value == 4 || piece.value == 5)) plain = false;
      }
      if (piece.broken()) return {};
    }
    if (top.number == 2) {
      Fields spec(top.text);
      while (spec.next()) {
        if (spec.number == 3) facts.bpe = spec.value == 2;
        if (spec.number == 24) suffix = spec.value != 0;
      }
      if (spec.broken()) return {};
    }
    if (top.number == 5) {  // denormalizer_spec
      Fields spec(top.text);
      while (spec.next())
        if (spec.number == 2 && !spec.text.empty() && !is_sound_charsmap(spec.text)) return {};
      if (spec.broken()) return {};
    }
    if (top.number == 3) {
      Fields spec(top.text);
      while (spec.next()) {
        if (spec.number == 2) {
          charsmap = !spec.text.empty();
          if (charsmap && !is_sound_charsmap(spec.text)) return {};
        }
        if (spec.number == 3) front = spec.value != 0;
        if (spec.number == 4) removes = spec.value != 0;
        if (spec.number == 5) escapes = spec.value != 0;
      }
      if (spec.broken()) return {};
    }
  }
  if (top.broken() || !pieces) return {};
  facts.readable = true;
  facts.plain_text = !charsmap && escapes && !suffix && !removes;
  facts.plain_pieces = plain;
  facts.space_in_front = front;
  return facts;
}

}  // namespace sheaf
