#include "core/text/read_number.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/text/utf8.h"

namespace sheaf {
namespace {

constexpr uint32_t kThinSpace = 0x2009;  // stands for every space that does not break a line

using Fraction = std::pair<uint32_t, double>;
constexpr Fraction kFractions[] = {{0xBD, 1.0 / 2},   {0xBC, 1.0 / 4},   {0xBE, 3.0 / 4},   {0x2150, 1.0 / 7},
                                   {0x2151, 1.0 / 9}, {0x2152, 0.1},     {0x2153, 1.0 / 3}, {0x2154, 2.0 / 3},
                                   {0x2155, 1.0 / 5}, {0x2156, 2.0 / 5}, {0x2157, 3.0 / 5}, {0x2158, 4.0 / 5},
                                   {0x2159, 1.0 / 6}, {0x215A, 5.0 / 6}, {0x215B, 1.0 / 8}, {0x215C, 3.0 / 8},
                                   {0x215D, 5.0 / 8}, {0x215E, 7.0 / 8}};

using Multiplier = std::pair<std::u32string_view, double>;
/// English, German, French, Spanish, Italian, Dutch and Portuguese, without the s of a plural.
constexpr Multiplier kMultipliers[] = {
    {U"dozen", 12},       {U"dutzend", 12},      {U"douzaine", 12},     {U"docena", 12},
    {U"dozzina", 12},     {U"dozzine", 12},      {U"dozijn", 12},       {U"d\u00FAzia", 12},
    {U"hundred", 1e2},    {U"hundert", 1e2},     {U"honderd", 1e2},     {U"thousand", 1e3},
    {U"tausend", 1e3},    {U"tsd", 1e3},         {U"teur", 1e3},        {U"keur", 1e3},
    {U"mille", 1e3},      {U"mila", 1e3},        {U"duizend", 1e3},     {U"million", 1e6},
    {U"millionen", 1e6},  {U"mio", 1e6},         {U"meur", 1e6},        {U"mill\u00F3n", 1e6},
    {U"millone", 1e6},    {U"milione", 1e6},     {U"milioni", 1e6},     {U"miljoen", 1e6},
    {U"mln", 1e6},        {U"milh\u00E3o", 1e6}, {U"milh\u00F5e", 1e6}, {U"milliarde", 1e9},
    {U"milliarden", 1e9}, {U"mrd", 1e9},         {U"milliard", 1e9},    {U"millardo", 1e9},
    {U"miliardo", 1e9},   {U"miliardi", 1e9},    {U"miljard", 1e9},     {U"mld", 1e9},
    {U"bn", 1e9},         {U"billionen", 1e12},  {U"billone", 1e12},    {U"bill\u00F3n", 1e12},
    {U"bilioni", 1e12},   {U"biljoen", 1e12}};
/// Words that mean this in English only; elsewhere they mean more, or another number.
constexpr Multiplier kEnglishMultipliers[] = {{U"billion", 1e9}, {U"trillion", 1e12}};
/// What may stand before the sign of a currency: "2 M\u20AC".
constexpr Multiplier kMoneyMultipliers[] = {{U"k", 1e3}, {U"t", 1e3}, {U"m", 1e6}, {U"md", 1e9}};

/// Words before a number that make it a bound, as < and > do.
constexpr std::u32string_view kBounds[] = {
    U"under",        U"over",        U"above",        U"below",      U"more than",
    U"less than",    U"fewer than",  U"up to",        U"at least",   U"at most",
    U"greater than", U"larger than", U"smaller than", U"mindestens", U"h\u00F6chstens",
    U"\u00FCber",    U"unter",       U"bis zu",       U"mehr als",   U"weniger als",
    U"plus de",      U"moins de",    U"au moins",     U"au plus",    U"jusqu'\u00E0",
    U"m\u00E1s de",  U"menos de",    U"hasta",        U"al menos",   U"como m\u00E1ximo",
    U"almeno",       U"pi\u00F9 di", U"meno di",      U"fino a",     U"minstens",
    U"hoogstens",    U"meer dan",    U"minder dan",   U"tot",        U"mais de",
    U"at\u00E9",     U"pelo menos"};

/// Units that mean the same.
constexpr std::u32string_view kSameUnits[][8] = {
    {U"eur", U"\u20AC", U"euro"},
    {U"usd", U"$", U"us$", U"us dollar", U"dollar"},
    {U"gbp", U"\u00A3", U"pound sterling"},  // a pound alone may be one of weight
    {U"jpy", U"\u00A5", U"yen"},
    {U"chf", U"fr", U"sfr", U"franken", U"swiss franc"},
    {U"m\u00B2", U"m2", U"m^2", U"qm", U"sqm", U"sq m", U"quadratmeter", U"square metre"},
    {U"m\u00B2", U"square meter", U"m\u00E8tre carr\u00E9", U"mq"},
    {U"m\u00B3", U"m3", U"m^3", U"cbm", U"kubikmeter", U"cubic metre", U"cubic meter"}};

/// Signs that mean the same as one that is read.
constexpr std::pair<uint32_t, uint32_t> kSameSigns[] = {
    {0x2212, '-'},        {0x2013, '-'},        {0xFE63, '-'},        {0xFF0D, '-'},
    {0x2010, '-'},        {0x2011, '-'},        {0xA0, kThinSpace},   {0x2007, kThinSpace},
    {0x2008, kThinSpace}, {0x200A, kThinSpace}, {0x202F, kThinSpace}, {0x2019, '\''},
    {0x02BC, '\''},       {0xD7, 'x'},          {0x2044, '/'},        {0x2215, '/'},
    {'\t', ' '}};

/// The characters of a text, with one sign for all that mean the same.
std::u32string plain_characters(std::string_view text) {
  const std::string valid = valid_utf8(text);
  std::u32string points;
  for (size_t at = 0; at < valid.size();) {
    const Decoded one = decode_valid(&valid[at]);
    at += one.bytes;
    const auto* same = std::ranges::find(kSameSigns, one.point, &std::pair<uint32_t, uint32_t>::first);
    const bool wide_digit = one.point >= 0xFF10 && one.point <= 0xFF19;
    points += static_cast<char32_t>(same != std::end(kSameSigns) ? same->second
                                    : wide_digit                 ? one.point - 0xFF10 + '0'
                                                                 : one.point);
  }
  return points;
}

bool is_digit(uint32_t point) {
  return point >= '0' && point <= '9';
}

bool is_space(uint32_t point) {
  return point == ' ' || point == kThinSpace;
}

uint32_t lower(uint32_t point) {
  const bool capital = (point >= 'A' && point <= 'Z') || (point >= 0xC0 && point <= 0xDE && point != 0xD7);
  return capital ? point + 32 : point;
}

std::u32string lower_text(std::u32string_view text) {
  std::u32string small;
  for (const uint32_t point : text) small += static_cast<char32_t>(lower(point));
  return small;
}

/// The unit in small letters, and those that mean the same: "m2" and "qm" for "m\u00B2".
std::vector<std::u32string> unit_spellings(std::u32string_view unit) {
  std::vector<std::u32string> spellings = {lower_text(unit)};
  if (spellings[0].empty()) return {};
  for (const auto& same : kSameUnits)
    if (std::ranges::find(same, spellings[0]) != std::end(same))
      for (const std::u32string_view other : same)
        if (!other.empty()) spellings.emplace_back(other);
  for (const auto& [raised, plain] : {std::pair(U'\u00B2', U'2'), std::pair(U'\u00B3', U'3')})
    if (const size_t at = spellings[0].find(raised); at != std::u32string::npos)
      spellings.push_back(std::u32string(spellings[0]).replace(at, 1, 1, plain));
  return spellings;
}

bool is_currency(uint32_t point) {
  return point == '$' || point == 0xA3 || point == 0xA5 || (point >= 0x20A0 && point <= 0x20CF);
}

const Fraction* fraction_at(uint32_t point) {
  const auto* found = std::ranges::find(kFractions, point, &Fraction::first);
  return found == std::end(kFractions) ? nullptr : found;
}

/// The power that a superscript digit stands for; -1 where it is none.
int superscript(uint32_t point) {
  if (point == 0xB9) return 1;
  if (point == 0xB2 || point == 0xB3) return static_cast<int>(point - 0xB0);
  if (point == 0x2070 || (point >= 0x2074 && point <= 0x2079)) return static_cast<int>(point - 0x2070);
  return -1;
}

bool is_letter(uint32_t point) {
  return (lower(point) >= 'a' && lower(point) <= 'z') ||
         (point >= 0xC0 && point != 0xD7 && point != 0xF7 && point < 0x2000);
}

class NumberReader {
 public:
  NumberReader(std::u32string text, Locale::Decimal decimal) : text_(std::move(text)), decimal_(decimal) {
    while (!text_.empty() && is_space(text_.back())) text_.pop_back();
  }

  NumberText read(std::u32string_view wanted) {
    using Trouble = NumberText::Trouble;
    const std::vector<std::u32string> unit = unit_spellings(wanted);
    find_all();
    std::vector<const Found*> taken;
    const auto take = [&](auto counts) {
      for (const Found& one : found_)
        if (counts(one)) taken.push_back(&one);
    };
    if (!unit.empty()) take([&](const Found& one) { return has_unit(one, unit); });
    if (taken.empty()) take([](const Found& one) { return !one.in_word; });
    if (taken.empty()) take([](const Found&) { return true; });
    if (taken.empty()) return {{}, Trouble::no_number};
    if (taken.size() > 1) return {{}, Trouble::several};
    const Found& one = *taken.front();
    if (one.no_locale) return {{}, Trouble::no_locale};
    if (!one.value || !std::isfinite(*one.value)) return {{}, Trouble::unclear};
    if (!unit.empty() && !has_unit(one, unit) && !is_bare(one)) return {{}, Trouble::other_unit};
    return {one.value, Trouble::none};
  }

  void add_all(std::vector<double>& values) {
    find_all();
    for (const Found& one : found_)
      if (one.value) values.push_back(*one.value);
  }

 private:
  struct Found {
    size_t begin, end;  ///< from the sign or the first digit to behind the last
    std::optional<double> value;
    bool in_word;
    bool no_locale;  ///< only a locale can tell what it is
  };

  uint32_t at(size_t i) const { return i < text_.size() ? text_[i] : 0; }
  uint32_t before(size_t i, size_t back = 1) const { return i >= back ? text_[i - back] : 0; }
  bool starts_number(size_t i) const {
    return is_digit(at(i)) || fraction_at(at(i)) != nullptr ||
           (at(i) == '.' && is_digit(at(i + 1)) && !is_letter(before(i)) && !is_digit(before(i))) ||
           is_price_without_whole(i);
  }
  /// At the comma of "-,50": half of a whole one, of which the dash says that there is none.
  bool is_price_without_whole(size_t i) const {
    return at(i) == ',' && is_digit(at(i + 1)) && (i == 0 || (before(i) == '-' && !is_digit(before(i, 2))));
  }

  void find_all() {
    for (size_t i = 0; i < text_.size();) {
      if (!starts_number(i)) {
        ++i;
        continue;
      }
      const size_t begin = i;
      no_locale_ = false;
      std::optional<double> value = number(i);
      const bool in_word = is_letter(before(begin)) || (before(begin) == '-' && is_letter(before(begin, 2)));
      size_t first = begin;
      const int sign = sign_before(first);
      if (sign == 0)
        value.reset();
      else if (value && sign < 0)
        value = -*value;
      if (!found_.empty() && joins(found_.back().end, begin)) {
        found_.back().value.reset();
        value.reset();
      }
      found_.push_back({first, i, value, in_word, no_locale_});
    }
  }

  /// Whether what stands between makes two numbers one statement: "5-7", "12 to 15", "2 x 500".
  bool joins(size_t end, size_t begin) const {
    while (is_space(at(end))) ++end;
    while (begin > end && (is_space(text_[begin - 1]) || is_currency(text_[begin - 1]))) --begin;
    static const std::set<std::u32string> joints = {U"-",  U"x",  U"X", U"*",     U"~",
                                                    U"to", U"or", U"/", U"\u2014"};
    return joints.contains(text_.substr(end, begin - end));
  }

  /// 1 or -1; 0 where something makes it unclear. Moves `begin` to the sign.
  int sign_before(size_t& begin) const {
    size_t i = begin;
    while (i > 0 && is_space(text_[i - 1])) --i;
    const uint32_t mark = before(i);
    if (mark == '<' || mark == '>' || mark == 0x2264 || mark == 0x2265 || mark == 0xB1) return 0;
    if (is_bound_before(i)) return 0;
    if (is_price_without_whole(begin)) {
      if (begin > 0) --begin;
      return 1;
    }
    i = begin;
    if (is_currency(before(i))) --i;
    // Behind blanks a sign belongs to the number only where the text starts with it.
    size_t sign = i;
    while (sign > 0 && is_space(text_[sign - 1])) --sign;
    if (sign != 1) sign = i;
    if (before(sign) != '-') return 1;
    const uint32_t outside = before(sign, 2);
    if (sign > 1 && !is_space(outside) && outside != '(' && outside != '=' && outside != ':') return 1;
    begin = sign - 1;
    return -1;
  }

  /// Whether words such as "up to" end at `end`, spaces and the sign of a currency apart.
  bool is_bound_before(size_t end) const {
    while (end > 0 && (is_space(text_[end - 1]) || is_currency(text_[end - 1]))) --end;
    return std::ranges::any_of(kBounds, [&](std::u32string_view words) {
      if (end < words.size() || is_letter(before(end - words.size()))) return false;
      for (size_t i = 0; i < words.size(); ++i) {
        const uint32_t there = text_[end - words.size() + i];
        if (words[i] == ' ' ? !is_space(there) : lower(there) != words[i]) return false;
      }
      return true;
    });
  }

  /// The number that starts at `i`, which moves behind it; nothing where it is not clear.
  std::optional<double> number(size_t& i) {
    const size_t begin = i;
    if (const Fraction* own = fraction_at(at(i))) {
      ++i;
      return is_digit(at(i)) ? std::nullopt : multiplied(own->second, i);
    }
    if (at(i) == '0' && lower(at(i + 1)) == 'x' && is_letter_or_digit(at(i + 2))) return skip_word(i);
    std::string digits = plain_digits(i);
    const bool whole = i - begin == digits.size() && digits.find('.') == std::string::npos;
    if (is_mark(i)) {
      no_locale_ = no_locale_ || (at(i) == ',' && decimal_ == Locale::Decimal::unknown);
      while (is_digit(at(i)) || is_mark(i)) ++i;
      return std::nullopt;
    }
    if (lower(at(i)) == 'e') digits += exponent(i);
    if (lower(at(i)) == 'e' && is_digit(at(i + 1))) return skip_word(i);
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc()) return std::nullopt;
    if (whole) {
      if (const auto mixed = with_fraction(value, i))
        value = *mixed;
      else if (at(i) == '/' && is_digit(at(i + 1)))
        return skip_digits(i);
    }
    if (const auto power = power_at(i)) value = std::pow(value, *power);
    value *= ten_to_a_power(i);
    skip_empty_cents(i);
    return multiplied(value, i);
  }

  /// "5,-" and "5.--": a price without cents.
  void skip_empty_cents(size_t& i) const {
    if ((at(i) != ',' && at(i) != '.') || (at(i + 1) != '-' && at(i + 1) != 0x2014)) return;
    size_t next = i + 1;
    while (at(next) == '-' || at(next) == 0x2014) ++next;
    if (!is_letter_or_digit(at(next))) i = next;
  }

  /// Digits with one decimal point, without the marks between thousands.
  std::string plain_digits(size_t& i) {
    std::string digits;
    const size_t begin = i;
    while (is_digit(at(i))) digits += static_cast<char>(text_[i++]);
    uint32_t mark = 0;
    if (digits.size() <= 3 && !digits.empty() && digits[0] != '0') mark = thousands_mark(begin, i);
    if (mark != 0)
      while (at(i) == mark && is_group(i + 1)) {
        for (size_t d = i + 1; d < i + 4; ++d) digits += static_cast<char>(text_[d]);
        i += 4;
      }
    if (no_locale_) return digits;
    const bool may_be_comma = mark == ' ' || mark == kThinSpace || decimal_ == Locale::Decimal::comma;
    const bool by_comma = mark == '.' || (mark != ',' && may_be_comma && at(i) == ',');
    if (at(i) == (by_comma ? ',' : '.') && is_digit(at(i + 1))) {
      if (digits.empty()) digits = "0";
      digits += '.';
      for (++i; is_digit(at(i)); ++i) digits += static_cast<char>(text_[i]);
    }
    return digits;
  }

  bool is_group(size_t i) const {
    return is_digit(at(i)) && is_digit(at(i + 1)) && is_digit(at(i + 2)) && !is_digit(at(i + 3));
  }

  /// The mark between the thousands of the number from `begin` whose first digits end at `i`; 0: none.
  uint32_t thousands_mark(size_t begin, size_t i) {
    const uint32_t mark = at(i);
    if (!is_group(i + 1)) return 0;
    if (mark == '\'' || mark == kThinSpace) return mark;
    // "12 128 GB" may be two numbers, but a text that starts with groups of three is read as one.
    if (mark == ' ')
      return std::all_of(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(begin),
                         [](uint32_t c) { return c == '-' || is_currency(c) || is_space(c); })
                 ? mark
                 : 0;
    if (mark != '.' && mark != ',') return 0;
    // A second mark tells: 1.200.000, 1.200,5.
    const uint32_t other = mark == U'.' ? U',' : U'.';
    if ((at(i + 4) == mark && is_group(i + 5)) || (at(i + 4) == other && is_digit(at(i + 5)))) return mark;
    no_locale_ = decimal_ == Locale::Decimal::unknown;
    return (mark == '.') == (decimal_ == Locale::Decimal::comma) ? mark : 0;
  }

  std::string exponent(size_t& i) const {
    size_t next = i + 1;
    std::string text = "e";
    if (at(next) == '-' || at(next) == '+') {
      if (at(next) == '-') text += '-';
      ++next;
    }
    if (!is_digit(at(next))) return {};
    while (is_digit(at(next))) text += static_cast<char>(text_[next++]);
    if (is_letter(at(next))) return {};
    i = next;
    return text;
  }

  /// value + the fraction that follows, or the fraction value / ... itself.
  std::optional<double> with_fraction(double value, size_t& i) const {
    size_t next = i;
    while (is_space(at(next)) && next < i + 2) ++next;
    if (const Fraction* own = fraction_at(at(next))) {
      i = next + 1;
      return value + own->second;
    }
    if (next == i && at(i) == '/') return fraction(value, i);
    if (next == i && at(i) == '-') ++next;
    if (next == i || !is_digit(at(next))) return std::nullopt;
    double above = 0;
    for (; is_digit(at(next)) && above < 100; ++next) above = above * 10 + (at(next) - '0');
    if (at(next) != '/') return std::nullopt;
    const auto part = fraction(above, next);
    if (!part) return std::nullopt;
    i = next;
    return value + *part;
  }

  /// above / below, where `i` is at the stroke and the two are such as people write for parts of one.
  std::optional<double> fraction(double above, size_t& i) const {
    double below = 0;
    size_t next = i + 1;
    for (; is_digit(at(next)) && below < 1000; ++next) below = below * 10 + (at(next) - '0');
    const bool usual =
        (below >= 2 && below <= 10) || below == 12 || below == 16 || below == 32 || below == 64;
    if (!usual || above < 1 || above >= below || at(next) == '/' || is_digit(at(next)) || at(next) == '.')
      return std::nullopt;
    i = next;
    return above / below;
  }

  /// Whether a digit follows the mark at `i`, so that the number does not end here.
  bool is_mark(size_t i) const {
    return (at(i) == ',' || at(i) == '.' || at(i) == ':' || at(i) == '\'') && is_digit(at(i + 1));
  }

  std::optional<double> skip_word(size_t& i) const {
    while (is_letter_or_digit(at(i))) ++i;
    return std::nullopt;
  }

  std::optional<double> skip_digits(size_t& i) const {
    while (is_digit(at(i)) || (at(i) == '/' && is_digit(at(i + 1)))) ++i;
    return std::nullopt;
  }

  /// "^3" or superscript digits.
  std::optional<double> power_at(size_t& i) const {
    const bool caret = at(i) == '^';
    size_t next = caret ? i + 1 : i;
    const auto digit = [&] {
      return !caret ? superscript(at(next)) : is_digit(at(next)) ? static_cast<int>(at(next) - '0') : -1;
    };
    const bool negative = at(next) == (caret ? '-' : 0x207B);
    if (negative) ++next;
    if (digit() < 0) return std::nullopt;
    double power = 0;
    for (; digit() >= 0; ++next) power = power * 10 + digit();
    if (negative) power = -power;
    i = next;
    return power;
  }

  /// " x 10^3" as 1000; 1 where it is not there.
  double ten_to_a_power(size_t& i) const {
    size_t next = i;
    while (is_space(at(next))) ++next;
    if (lower(at(next)) != 'x' && at(next) != '*' && at(next) != 0xB7) return 1;
    ++next;
    while (is_space(at(next))) ++next;
    if (at(next) != '1' || at(next + 1) != '0') return 1;
    next += 2;
    const auto power = power_at(next);
    if (!power) return 1;
    i = next;
    return std::pow(10, *power);
  }

  /// "2k", "1 million"; nothing for what may mean several things: "4K", "5M", "5+", "3 billion" where numbers
  /// have a decimal comma.
  std::optional<double> multiplied(double value, size_t& i) const {
    if (at(i) == '+') return std::nullopt;
    size_t word = i;
    while (is_space(at(word))) ++word;
    size_t end = word;
    std::u32string name;
    for (; is_letter(at(end)); ++end) name += static_cast<char32_t>(lower(at(end)));
    const auto in = [&](const auto& table) {
      const auto* known = std::ranges::find(table, name, &Multiplier::first);
      return known == std::end(table) ? 0 : known->second;
    };
    if (is_currency(at(end)))
      if (const double by = in(kMoneyMultipliers); by > 0) {
        if (name == U"t" && decimal_ != Locale::Decimal::comma) return std::nullopt;
        i = end;
        return value * by;
      }
    const uint32_t suffix = at(i);
    if (!is_letter(at(i + 1)) && (suffix == 'K' || suffix == 'M' || suffix == 'B')) return std::nullopt;
    if (suffix == 'k' && !is_letter(at(i + 1))) {
      ++i;
      return value * 1000;
    }
    double by = in(kMultipliers);
    if (by == 0 && name.ends_with(U's')) {
      name.pop_back();
      by = in(kMultipliers);
    }
    const bool comma = decimal_ == Locale::Decimal::comma;
    if (by == 0 && comma && name == U"mil") by = 1e3;  // of an inch elsewhere
    if (by == 0) by = in(kEnglishMultipliers);
    if (by == 0) return value;
    if (comma && in(kEnglishMultipliers) > 0) return std::nullopt;
    i = at(end) == '.' ? end + 1 : end;
    return value * by;
  }

  static bool is_letter_or_digit(uint32_t point) { return is_letter(point) || is_digit(point); }

  /// Whether nothing but marks follows, up to the next number.
  bool is_bare(const Found& one) const {
    for (size_t i = one.end; i < text_.size(); ++i)
      if (!is_space(text_[i]) && text_[i] != '.' && text_[i] != ')' && text_[i] != ',') return false;
    return !is_currency(before(one.begin)) && !is_currency(at(one.begin));
  }

  bool has_unit(const Found& one, const std::vector<std::u32string>& spellings) const {
    return std::ranges::any_of(spellings, [&](const std::u32string& unit) { return is_in(one, unit); });
  }

  bool is_in(const Found& one, std::u32string_view unit) const {
    if (is_currency(unit[0]) && unit.size() == 1)
      for (const size_t i : {one.begin, one.begin - 1})
        if (at(i) == unit[0]) return true;
    size_t i = one.end;
    while (is_space(at(i)) || at(i) == '-') ++i;
    for (size_t u = 0; u < unit.size(); ++u, ++i) {
      if (at(i) == '.' && unit[u] != '.') ++i;
      if (unit[u] == ' ' && !is_space(at(i)))
        --i;
      else if (unit[u] != ' ' && lower(at(i)) != unit[u])
        return false;
    }
    if (is_letter(unit.back()) && lower(at(i)) == 's') ++i;
    return !is_letter_or_digit(at(i));
  }

  std::u32string text_;
  Locale::Decimal decimal_;
  bool no_locale_ = false;  ///< of the number that is being read
  std::vector<Found> found_;
};

}  // namespace

NumberText read_number_text(std::string_view text, std::string_view unit, const Locale& locale) {
  return NumberReader(plain_characters(text), locale.decimal).read(plain_characters(unit));
}

std::vector<double> numbers_in(std::string_view text) {
  std::vector<double> values;
  for (const auto decimal : {Locale::Decimal::point, Locale::Decimal::comma})
    NumberReader(plain_characters(text), decimal).add_all(values);
  return values;
}

}  // namespace sheaf
