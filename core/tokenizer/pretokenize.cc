#include "core/tokenizer/pretokenize.h"

#include <cstdint>

#include "core/text/unicode.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

using enum CharClass::Flag;

// A place in valid text: the class of the code point there and its length; past the end, class 0 and length
// 0.
struct Here {
  uint32_t point = 0;
  uint32_t bytes = 0;
  uint8_t cls = 0;
};

class Scan {
 public:
  Scan(const char* end, const uint8_t* classes) : end_(end), classes_(classes) {}

  Here at(const char* p) const {
    if (p == end_) return {};
    const Decoded d = decode_valid(p);
    return {d.point, d.bytes, classes_[d.point]};
  }
  const char* end() const { return end_; }

  /// The end of the run of code points for which `member` holds.
  template <class Member>
  const char* run(const char* p, Member member) const {
    while (p != end_) {
      const Here h = at(p);
      if (!member(h)) break;
      p += h.bytes;
    }
    return p;
  }

 private:
  const char* end_;
  const uint8_t* classes_;
};

bool is_newline(uint32_t point) {
  return point == '\n' || point == '\r';
}
bool is_letter_here(Here h) {
  return h.cls & is_letter;
}
bool is_number_here(Here h) {
  return h.cls & is_number;
}
bool is_other(Here h) {
  return h.bytes != 0 && !(h.cls & (is_letter | is_number | is_space));
}

// Bytes of 's 't 're 've 'm 'll 'd at p, or 0.
template <bool ignore_case>
size_t contraction(const Scan& s, const char* p) {
  if (*p != '\'' || p + 1 == s.end()) return 0;
  const auto lower = [](char c) {
    return ignore_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  };
  const char a = lower(p[1]);
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
  // The long s folds to s when case is ignored.
  if (ignore_case && s.end() - p >= 3 && p[1] == '\xC5' && p[2] == '\xBF') return 3;
  if (p + 2 == s.end()) return 0;
  const char b = lower(p[2]);
  return (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') ? 3 : 0;
}

// \s*[\r\n]+ (where newlines count) | \s+(?!\S) | \s+ at a space character.
template <bool newlines>
const char* spaces(const Scan& s, const char* p) {
  const char* last = p;           // where the last character of the run starts
  const char* newline = nullptr;  // the end of the last newline
  const char* q = p;
  while (q != s.end()) {
    const Here h = s.at(q);
    if (!(h.cls & is_space)) break;
    last = q;
    q += h.bytes;
    if (newlines && is_newline(h.point)) newline = q;
  }
  if (newline != nullptr) return newline;
  return q == s.end() || last == p ? q : last;
}

template <int most>
const char* numbers(const Scan& s, const char* p) {
  for (int i = 0; i < most && p != s.end(); ++i) {
    const Here h = s.at(p);
    if (!(h.cls & is_number)) break;
    p += h.bytes;
  }
  return p;
}

const char* next_gpt2(const Scan& s, const char* p) {
  if (const size_t n = contraction<false>(s, p)) return p + n;
  Here h = s.at(p);
  const char* word = p;
  if (h.point == ' ') {
    const Here after = s.at(p + 1);
    if (after.bytes == 0 || (after.cls & is_space)) return spaces<false>(s, p);
    word = p + 1;
    h = after;
  } else if (h.cls & is_space) {
    return spaces<false>(s, p);
  }
  if (h.cls & is_letter) return s.run(word, is_letter_here);
  if (h.cls & is_number) return s.run(word, is_number_here);
  return s.run(word, is_other);
}

// ` ?[^\s\p{L}\p{N}]+[\r\n]*` (with `slash`: [\r\n/]*) where the first character is known to match.
template <bool slash>
const char* punctuation(const Scan& s, const char* p) {
  p = s.run(p, is_other);
  return s.run(p, [](Here h) { return is_newline(h.point) || (slash && h.point == '/'); });
}

template <int most_digits>
const char* next_cl100k(const Scan& s, const char* p) {
  if (const size_t n = contraction<true>(s, p)) return p + n;
  const Here h = s.at(p);
  if (h.cls & is_letter) return s.run(p, is_letter_here);
  if (h.cls & is_number) return numbers<most_digits>(s, p);
  const Here after = s.at(p + h.bytes);
  if (!is_newline(h.point) && (after.cls & is_letter)) return s.run(p + h.bytes, is_letter_here);
  if (h.point == ' ' && is_other(after)) return punctuation<false>(s, p + 1);
  if (h.cls & is_space) return spaces<true>(s, p);
  return punctuation<false>(s, p);
}

bool in_head(Here h) {
  return (h.cls & is_mark) || (h.cls & (is_letter | is_lower)) == is_letter;
}
bool in_tail(Here h) {
  return (h.cls & is_mark) || (h.cls & (is_letter | is_upper)) == is_letter;
}

// [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+ at p, or null.
const char* head_then_tail(const Scan& s, const char* p) {
  const char* both = nullptr;  // the end of the last head character that could also be a tail
  const char* q = p;
  while (q != s.end()) {
    const Here h = s.at(q);
    if (!in_head(h)) break;
    q += h.bytes;
    if (in_tail(h)) both = q;
  }
  const char* tail = s.run(q, in_tail);
  return tail != q ? tail : both;
}

// [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]* at p, or null.
const char* head_and_tail(const Scan& s, const char* p) {
  const char* q = s.run(p, in_head);
  return q == p ? nullptr : s.run(q, in_tail);
}

template <int most_digits, bool contractions>
const char* next_cased(const Scan& s, const char* p) {
  const Here h = s.at(p);
  const bool may_lead = !is_newline(h.point) && !(h.cls & (is_letter | is_number));
  const char* word = may_lead ? head_then_tail(s, p + h.bytes) : nullptr;
  if (word == nullptr) word = head_then_tail(s, p);
  if (word == nullptr && may_lead) word = head_and_tail(s, p + h.bytes);
  if (word == nullptr) word = head_and_tail(s, p);
  if (word != nullptr) return contractions && word != s.end() ? word + contraction<true>(s, word) : word;
  if (h.cls & is_number) return numbers<most_digits>(s, p);
  if (h.point == ' ' && is_other(s.at(p + 1))) return punctuation<true>(s, p + 1);
  if (h.cls & is_space) return spaces<true>(s, p);
  return punctuation<true>(s, p);
}

// A run of members, or of non-members, in turn.
template <class Member>
const char* next_in_turn(const Scan& s, const char* p, Member member) {
  const bool inside = member(s.at(p));
  return s.run(p, [&](Here h) { return member(h) == inside; });
}

template <uint8_t cls>
const char* next_run(const Scan& s, const char* p) {
  return next_in_turn(s, p, [](Here h) { return (h.cls & cls) != 0; });
}

template <uint8_t cls>
const char* next_each(const Scan& s, const char* p) {
  const Here h = s.at(p);
  if (h.cls & cls) return p + h.bytes;
  return s.run(p, [](Here x) { return !(x.cls & cls); });
}

const char* next_triple(const Scan& s, const char* p) {
  const auto triple = [&s](const char* q) {
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    return s.end() - q >= 3 && digit(q[0]) && digit(q[1]) && digit(q[2]);
  };
  if (triple(p)) return p + 3;
  while (p != s.end() && !triple(p)) p += sequence_bytes(*p);
  return p;
}

template <bool backtick>
const char* next_punct(const Scan& s, const char* p) {
  return next_in_turn(s, p, [](Here h) {
    const uint32_t c = h.point;
    return (h.cls & is_punct) || c == '$' || c == '+' || c == '<' || c == '=' || c == '>' || c == '^' ||
           c == '~' || c == '|' || (backtick && c == '`');
  });
}

// `next` as a template argument is inlined into its loop.
template <const char* (*next)(const Scan& s, const char* p)>
void cut(std::string_view text, const std::vector<size_t>& before, std::vector<size_t>& ends) {
  const uint8_t* classes = char_classes();
  size_t begin = 0;
  for (const size_t end : before) {
    const Scan s(text.data() + end, classes);
    for (const char* p = text.data() + begin; p != s.end();) {
      p = next(s, p);
      ends.push_back(static_cast<size_t>(p - text.data()));
    }
    begin = end;
  }
}

void cut_by(CutRule rule, std::string_view text, const std::vector<size_t>& before,
            std::vector<size_t>& ends) {
  switch (rule) {
    case CutRule::gpt2:
      return cut<next_gpt2>(text, before, ends);
    case CutRule::cl100k:
      return cut<next_cl100k<3>>(text, before, ends);
    case CutRule::qwen2:
      return cut<next_cl100k<1>>(text, before, ends);
    case CutRule::tekken:
      return cut<next_cased<1, false>>(text, before, ends);
    case CutRule::o200k:
      return cut<next_cased<3, true>>(text, before, ends);
    case CutRule::digits_each:
      return cut<next_each<is_digit>>(text, before, ends);
    case CutRule::number_each:
      return cut<next_each<is_number>>(text, before, ends);
    case CutRule::digits_run:
      return cut<next_run<is_digit>>(text, before, ends);
    case CutRule::number_run:
      return cut<next_run<is_number>>(text, before, ends);
    case CutRule::ascii_triples:
      return cut<next_triple>(text, before, ends);
    case CutRule::punct:
      return cut<next_punct<false>>(text, before, ends);
    case CutRule::punct_falcon:
      return cut<next_punct<true>>(text, before, ends);
  }
}

}  // namespace

void PreTokenizer::split(std::string_view text, std::vector<size_t>& ends, std::vector<size_t>& spare) const {
  ends.clear();
  if (text.empty()) return;
  ends.push_back(text.size());
  for (const CutRule rule : rules) {
    std::swap(ends, spare);
    ends.clear();
    cut_by(rule, text, spare, ends);
  }
}

}  // namespace sheaf
