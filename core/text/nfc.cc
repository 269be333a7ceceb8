#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <unordered_map>
#include <vector>

#include "core/text/unicode.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

struct CombiningRun {
  uint32_t first;  // the run ends where the next begins
  uint8_t value;   // canonical combining classes numbered in their order; 0 is a starter
};
struct Decomposition {
  uint32_t point;
  std::array<uint32_t, 4> parts;  // zero after the last
};
struct Composition {
  uint32_t first, second, point;
};

#include "core/text/nfc_data.inc"

constexpr uint32_t syllable_base = 0xAC00, lead_base = 0x1100, vowel_base = 0x1161, tail_base = 0x11A7;
constexpr uint32_t vowels = 21, tails = 28, leads = 19, syllables = leads * vowels * tails;
constexpr uint32_t first_affected = 0x300;  // every code point below is a starter that stays as it is

// Whether a code point can change under NFC or make an earlier one change.
constexpr uint8_t touchy = 0x80, class_mask = 0x7F;

struct Tables {
  std::vector<uint8_t> info;  // [0x110000] combining class, and `touchy`
  std::unordered_map<uint32_t, const Decomposition*> decompose;
  std::unordered_map<uint64_t, uint32_t> compose;  // first << 32 | second

  Tables() : info(0x110000) {
    constexpr size_t runs = std::size(combining_runs);
    for (size_t i = 0; i < runs; ++i) {
      const uint32_t end = i + 1 < runs ? combining_runs[i + 1].first : 0x110000;
      if (combining_runs[i].value == 0) continue;
      for (uint32_t c = combining_runs[i].first; c < end; ++c) info[c] = touchy | combining_runs[i].value;
    }
    for (const Decomposition& d : decompositions) decompose.emplace(d.point, &d);
    for (const Composition& c : compositions) compose.emplace(uint64_t{c.first} << 32 | c.second, c.point);
    for (const Decomposition& d : decompositions)
      if (compose_of(d.parts) != d.point) info[d.point] |= touchy;
    for (const Composition& c : compositions) info[c.second] |= touchy;
    for (uint32_t c = vowel_base; c < vowel_base + vowels; ++c) info[c] |= touchy;
    for (uint32_t c = tail_base + 1; c < tail_base + tails; ++c) info[c] |= touchy;
  }

  uint8_t combining_class(uint32_t c) const { return info[c] & class_mask; }

  // One code point for two, or 0.
  uint32_t composed(uint32_t a, uint32_t b) const {
    const auto it = compose.find(uint64_t{a} << 32 | b);
    return it == compose.end() ? 0 : it->second;
  }

  // What composing the full decomposition gives back, or 0 where it does not become one code point.
  uint32_t compose_of(const std::array<uint32_t, 4>& parts) const {
    uint32_t point = parts[0];
    for (size_t i = 1; i < parts.size() && parts[i] != 0 && point != 0; ++i)
      point = composed(point, parts[i]);
    return point;
  }
};

const Tables& tables() {
  static const Tables built;
  return built;
}

uint32_t compose_pair(const Tables& t, uint32_t a, uint32_t b) {
  if (a - lead_base < leads && b - vowel_base < vowels)
    return syllable_base + ((a - lead_base) * vowels + (b - vowel_base)) * tails;
  if (a - syllable_base < syllables && (a - syllable_base) % tails == 0 && b > tail_base &&
      b < tail_base + tails)
    return a + (b - tail_base);
  return t.composed(a, b);
}

// Sorts each row of marks by class.
void order_marks(const Tables& t, std::vector<uint32_t>& run) {
  for (size_t i = 0; i < run.size();) {
    size_t end = i;
    while (end < run.size() && t.combining_class(run[end]) != 0) ++end;
    std::stable_sort(run.begin() + static_cast<std::ptrdiff_t>(i),
                     run.begin() + static_cast<std::ptrdiff_t>(end),
                     [&](uint32_t a, uint32_t b) { return t.combining_class(a) < t.combining_class(b); });
    i = end + 1;
  }
}

// Orders the marks and composes what can be composed; `run` starts with a starter or is all marks.
void compose_run(const Tables& t, std::vector<uint32_t>& run) {
  order_marks(t, run);
  size_t starter = run.size();
  size_t kept = 0;
  int last = -1;  // class of the last kept mark after the starter; -1: none
  for (size_t i = 0; i < run.size(); ++i) {
    const uint32_t c = run[i];
    const uint8_t k = t.combining_class(c);
    if (starter < run.size() && (last < 0 || (last < k && last != 0))) {
      if (const uint32_t joined = compose_pair(t, run[starter], c); joined != 0) {
        run[starter] = joined;
        continue;
      }
    }
    if (k == 0) {
      starter = kept;
      last = -1;
    } else {
      last = k;
    }
    run[kept++] = c;
  }
  run.resize(kept);
}

void decompose_into(const Tables& t, uint32_t c, std::vector<uint32_t>& run) {
  if (c - syllable_base < syllables) {
    const uint32_t s = c - syllable_base;
    run.push_back(lead_base + s / (vowels * tails));
    run.push_back(vowel_base + s / tails % vowels);
    if (s % tails != 0) run.push_back(tail_base + s % tails);
    return;
  }
  const auto it = t.decompose.find(c);
  if (it == t.decompose.end()) {
    run.push_back(c);
    return;
  }
  for (const uint32_t part : it->second->parts)
    if (part != 0) run.push_back(part);
}

// Where the first code point that may change stands, or the size.
size_t first_touchy(std::string_view text, const Tables& t) {
  size_t at = 0;
  while (at < text.size()) {
    if (static_cast<unsigned char>(text[at]) < 0xCC) {  // below U+0300
      at += sequence_bytes(text[at]);
      continue;
    }
    const Decoded d = decode_valid(text.data() + at);
    if (t.info[d.point] & touchy) return at;
    at += d.bytes;
  }
  return at;
}

}  // namespace

std::string_view normalize_nfc(std::string_view text, std::string& storage) {
  const Tables& t = tables();
  if (first_touchy(text, t) == text.size()) return text;
  storage.clear();
  storage.reserve(text.size());
  std::vector<uint32_t> run;
  const auto flush = [&] {
    compose_run(t, run);
    for (const uint32_t c : run) append_utf8(c, storage);
    run.clear();
  };
  for (size_t at = 0; at < text.size();) {
    const Decoded d = decode_valid(text.data() + at);
    at += d.bytes;
    // Nothing after a code point that is not touchy composes with anything before it.
    if (!(t.info[d.point] & touchy) && !run.empty()) flush();
    if (d.point < first_affected && (at == text.size() || static_cast<unsigned char>(text[at]) < 0xCC)) {
      append_utf8(d.point, storage);
    } else {
      decompose_into(t, d.point, run);
    }
  }
  flush();
  return storage;
}

std::string normalize_nfd(std::string_view text) {
  const Tables& t = tables();
  std::vector<uint32_t> points;
  for (size_t at = 0; at < text.size();) {
    const Decoded d = decode_valid(text.data() + at);
    at += d.bytes;
    decompose_into(t, d.point, points);
  }
  order_marks(t, points);
  std::string out;
  out.reserve(text.size());
  for (const uint32_t c : points) append_utf8(c, out);
  return out;
}

}  // namespace sheaf
