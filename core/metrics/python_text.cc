#include "core/metrics/python_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>

#include "core/text/utf8.h"

namespace sheaf::python {
namespace {

struct ClassRun {
  uint32_t first;  // the run ends where the next begins
  uint8_t flags;
};
struct LowerRun {
  uint32_t first, last, step;
  int32_t distance;
};

#include "core/metrics/python_text_tables.inc"

enum Flag : uint8_t { space = 1, word = 2, cased = 4, ignorable = 8, digit = 16 };

constexpr uint32_t kCapitalSigma = 0x3A3, kSigma = 0x3C3, kFinalSigma = 0x3C2, kDottedI = 0x130;

/// The last run that does not begin after the point; null where none does.
template <class Run, size_t count>
const Run* last_run(const Run (&runs)[count], uint32_t point) {
  const auto* after = std::ranges::upper_bound(runs, point, {}, &Run::first);
  return after == runs ? nullptr : after - 1;
}

const ClassRun& run_of(uint32_t point) {
  return *last_run(class_runs, point);
}

bool is(uint32_t point, Flag flag) {
  return (run_of(point).flags & flag) != 0;
}

bool is_space_at(const char* p) {
  const auto c = static_cast<unsigned char>(*p);
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return is(decode_valid(p).point, space);
}

uint32_t lower_point(uint32_t point) {
  const LowerRun* run = last_run(lower_runs, point);
  if (!run || point > run->last || (point - run->first) % run->step != 0) return point;
  return static_cast<uint32_t>(static_cast<int32_t>(point) + run->distance);
}

/// A capital sigma is final where a cased letter stands before it and none after, looking past apostrophes
/// and the like.
bool is_final_sigma(std::string_view text, size_t at) {
  size_t before = at;
  uint32_t point = 0;
  while (before > 0) {
    before = character_before(text, before);
    point = decode_valid(&text[before]).point;
    if (!is(point, ignorable)) break;
  }
  if (before == at || !is(point, cased)) return false;
  for (size_t next = at + 2; next < text.size();) {
    const Decoded decoded = decode_valid(&text[next]);
    if (!is(decoded.point, ignorable)) return !is(decoded.point, cased);
    next += decoded.bytes;
  }
  return true;
}

/// The text with every decimal digit of any script as an ASCII one; empty where another character is not
/// ASCII.
std::string ascii_digits(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const Decoded decoded = decode_valid(&text[at]);
    at += decoded.bytes;
    if (decoded.point < 0x80) {
      out += static_cast<char>(decoded.point);
      continue;
    }
    const ClassRun& run = run_of(decoded.point);
    if ((run.flags & digit) == 0) return {};
    out += static_cast<char>('0' + (decoded.point - run.first) % 10);
  }
  return out;
}

}  // namespace

std::string lower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (static_cast<unsigned char>(c) < 0x80) {
      out += small_letter(c);
      ++at;
      continue;
    }
    const Decoded decoded = decode_valid(&text[at]);
    if (decoded.point == kDottedI) {
      out += "i\u0307";
    } else if (decoded.point == kCapitalSigma) {
      append_utf8(is_final_sigma(text, at) ? kFinalSigma : kSigma, out);
    } else {
      append_utf8(lower_point(decoded.point), out);
    }
    at += decoded.bytes;
  }
  return out;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> words;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t next = at + sequence_bytes(text[at]);
    if (is_space_at(&text[at])) {
      if (at > begin) words.push_back(text.substr(begin, at - begin));
      begin = next;
    }
    at = next;
  }
  if (text.size() > begin) words.push_back(text.substr(begin));
  return words;
}

std::string_view strip(std::string_view text) {
  const auto words = split(text);
  if (words.empty()) return {};
  const char* begin = words.front().data();
  return {begin, static_cast<size_t>(words.back().data() + words.back().size() - begin)};
}

std::optional<double> parse_number(std::string_view text) {
  std::string number = ascii_digits(strip(text));
  const auto is_digit_at = [&](size_t at) {
    return at < number.size() && number[at] >= '0' && number[at] <= '9';
  };
  for (size_t at = 0; at < number.size(); ++at)
    if (number[at] == '_' && !(is_digit_at(at - 1) && is_digit_at(at + 1))) return std::nullopt;
  std::erase(number, '_');
  if (number.starts_with('+') && !number.starts_with("+-")) number.erase(0, 1);
  double value = 0;
  const char* end = number.data() + number.size();
  const auto [stop, error] = std::from_chars(number.data(), end, value);
  // nan(…), which C++ reads, is no number of Python's.
  if (error == std::errc::invalid_argument || stop != end || number.ends_with(')')) return std::nullopt;
  return std::strtod(number.c_str(), nullptr);  // infinity or 0 where it is out of range
}

std::string text_of(double value) {
  if (std::isnan(value)) return "nan";
  std::string text = fmt::format("{}", value);
  if (std::isfinite(value) && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

double round_to_cents(double value) {
  return std::strtod(fmt::format("{:.2f}", value).c_str(), nullptr);
}

bool is_word(uint32_t point) {
  return is(point, word);
}

}  // namespace sheaf::python
