#include "core/task/find_text.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/task/text_answers.h"
#include "core/task/value_path.h"
#include "core/text/date_text.h"
#include "core/text/read_number.h"
#include "core/text/unicode.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

constexpr Locale::Decimal kDecimals[] = {Locale::Decimal::point, Locale::Decimal::comma};

/// Small numbers in English, German, French, Spanish, Italian and Dutch.
constexpr std::string_view kNumberWords[][8] = {
    {"zero", "zéro", "cero"},
    {"one", "single", "eins", "ein", "une", "uno", "een", "un"},
    {"two", "pair", "double", "zwei", "deux", "dos", "due", "twee"},
    {"three", "triple", "drei", "trois", "tres", "tre", "drie"},
    {"four", "vier", "quatre", "cuatro", "quattro"},
    {"five", "fünf", "cinq", "cinco", "cinque", "vijf"},
    {"six", "sechs", "seis", "sei", "zes"},
    {"seven", "sieben", "sept", "siete", "sette", "zeven"},
    {"eight", "acht", "huit", "ocho", "otto"},
    {"nine", "neun", "neuf", "nueve", "nove", "negen"},
    {"ten", "zehn", "dix", "diez", "dieci", "tien"},
    {"eleven", "elf", "onze", "once", "undici"},
    {"twelve", "dozen", "zwölf", "douze", "doce", "dodici", "twaalf"}};

char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

/// Knuth, Morris and Pratt: linear, whatever repeats in the texts. `wanted` and the texts that are looked
/// through are compared as `fold` makes them.
template <class Fold>
class Finder {
 public:
  Finder(std::string_view wanted, Fold fold) : wanted_(wanted), fold_(fold), known_(wanted.size()) {
    for (size_t i = 1, length = 0; i < wanted.size(); ++i) {
      length = next_length(length, fold(wanted[i]));
      known_[i] = length;
    }
  }

  /// Calls visit(begin) for whole words of `text` that are the wanted ones, until it returns false.
  template <class Visit>
  void find(std::string_view text, const Visit& visit) const {
    for (size_t i = 0, length = 0; i < text.size(); ++i) {
      length = next_length(length, fold_(text[i]));
      if (length < wanted_.size()) continue;
      const size_t begin = i + 1 - length;
      if (splits_words(text, begin) && splits_words(text, i + 1) && !visit(begin)) return;
      length = known_[length - 1];
    }
  }

 private:
  size_t next_length(size_t length, char c) const {
    while (length > 0 && fold_(wanted_[length]) != c) length = known_[length - 1];
    return fold_(wanted_[length]) == c ? length + 1 : 0;
  }

  std::string_view wanted_;
  Fold fold_;
  std::vector<size_t> known_;  // per byte, how long a beginning of the wanted text ends with it
};

template <class Fold>
void find_folded(const Record& record, std::string_view text, Fold fold, PlaceChoice& choice) {
  const Finder finder(text, fold);
  for (const ColumnText& column : columns_of(record)) {
    if (choice.settled()) return;
    finder.find(column.text, [&](size_t begin) {
      return choice.add({column.begin + begin, column.begin + begin + text.size()});
    });
  }
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// How many bytes at `at` divide thousands: an apostrophe, or a space of any kind; 0: none.
size_t thousands_bytes(std::string_view text, size_t at) {
  text = text.substr(std::min(at, text.size()));
  for (const std::string_view mark : {" ", "'", "\u2019"})
    if (text.starts_with(mark)) return mark.size();
  return special_space(text);
}

/// The end of the number in digits that begins at `at`: 1,200.5. With `groups`, 1 200,5 and 1'200.5 too.
size_t number_end(std::string_view text, size_t at, bool groups) {
  const auto digit = [&](size_t i) { return i < text.size() && is_digit(text[i]); };
  const size_t begin = at;
  while (true) {
    while (digit(at) || (at < text.size() && (text[at] == '.' || text[at] == ',') && digit(at + 1))) ++at;
    const size_t mark = groups ? thousands_bytes(text, at) : 0, next = at + mark;
    const bool group = digit(next) && digit(next + 1) && digit(next + 2) && !digit(next + 3);
    if (mark == 0 || !group || text.substr(begin, at - begin).find_first_of(".,") != std::string_view::npos)
      return at;
    at = next + 3;
  }
}

/// Whether the digits are this number in some locale.
bool reads_as(std::string_view digits, double number) {
  return std::ranges::any_of(kDecimals, [&](Locale::Decimal decimal) {
    return read_number_text(digits, {}, {decimal}).value == number;
  });
}

/// How many bytes before `at` are a minus sign.
size_t minus_bytes(std::string_view text, size_t at) {
  for (const std::string_view sign : {"-", "\u2212"})
    if (text.substr(0, at).ends_with(sign)) return sign.size();
  return 0;
}

constexpr size_t kIsoDate = 10;  // bytes

/// A letter or a digit of a date; of letters beyond ASCII those of \u00E4 and \u00E9, both bytes.
bool is_date_part(std::string_view text, size_t at) {
  const char c = text[at];
  return is_digit(c) || (to_lower(c) >= 'a' && to_lower(c) <= 'z') || c == '\xC3' ||
         (at > 0 && text[at - 1] == '\xC3');
}

/// A text of the same length with plain spaces for all others.
std::string with_plain_spaces(std::string_view text) {
  std::string plain(text);
  for (size_t at = plain.find_first_of("\xC2\xE2"); at != std::string::npos;
       at = plain.find_first_of("\xC2\xE2", at + 1))
    if (const size_t bytes = special_space(std::string_view(plain).substr(at)); bytes > 0)
      plain.replace(at, bytes, bytes, ' ');
  return plain;
}

/// What a search for a date takes for it.
struct DateForms {
  std::string_view iso;
  std::string_view year = {};  ///< to be read behind the text, where the year stands elsewhere
  bool any_locale = false;     ///< 03/04/2026 is both of its dates
};

/// Two digits of a year count as the year of the date.
bool is_this_date(std::string_view text, const DateForms& date) {
  const std::string_view iso = date.iso;
  for (const auto dates : {Locale::Dates::unknown, Locale::Dates::day_first, Locale::Dates::month_first}) {
    if (dates != Locale::Dates::unknown && !date.any_locale) break;
    const Locale locale{.dates = dates};
    const DateText read = read_date_text(text, locale);
    if (read.value == iso) return true;
    if (read.trouble != DateText::Trouble::unclear || text.size() < 2) continue;
    const std::string_view year = text.substr(text.size() - 2);
    if (year != iso.substr(2, 2)) continue;
    const std::string whole = fmt::format("{}{}", text.substr(0, text.size() - 2), iso.substr(0, 4));
    if (read_date_text(whole, locale).value == iso) return true;
  }
  return false;
}

/// The end of the date that begins at `at` and is `iso`; 0: there is none. "1st of March, 2026" has the most
/// parts, five.
size_t date_end(std::string_view text, size_t at, const DateForms& date) {
  constexpr int kMostParts = 5;
  constexpr size_t kWidestGap = 6;  // a dot, a comma and a space of three bytes
  const auto part_end = [&](size_t from) {
    const bool digits = is_digit(text[from]);
    while (from < text.size() && is_date_part(text, from) && is_digit(text[from]) == digits) ++from;
    return from;
  };
  size_t end = part_end(at);
  for (int parts = 1; parts < kMostParts; ++parts) {
    const size_t next = std::min(text.find_first_not_of(" .,-/", end), text.size());
    if (next == text.size() || next - end > kWidestGap || !is_date_part(text, next)) return 0;
    end = part_end(next);
    const bool time = end + 1 < text.size() && text[end] == 'T' && is_digit(text[end + 1]);
    const bool whole = end == text.size() || !is_date_part(text, end) || time;
    if (!whole || parts + (date.year.empty() ? 0 : 1) < 2) continue;
    const std::string_view found = text.substr(at, end - at);
    if (is_this_date(date.year.empty() ? std::string(found) : fmt::format("{} {}", found, date.year), date))
      return end;
  }
  return 0;
}

std::optional<TextPlace> search_date(const Record& record, const DateForms& date, PlaceChoice choice = {}) {
  const std::string_view iso = date.iso;
  const std::string compact = fmt::format("{}{}{}", iso.substr(0, 4), iso.substr(5, 2), iso.substr(8));
  for (const ColumnText& column : columns_of(record)) {
    const std::string text = with_plain_spaces(column.text);
    const auto starts = [&](size_t at) {
      return is_date_part(text, at) && (at == 0 || !is_date_part(text, at - 1));
    };
    for (size_t at = 0; at < text.size(); ++at) {
      if (!starts(at)) continue;
      size_t end = date_end(text, at, date);
      // "on Sunday" before a date is none of it.
      for (size_t later = at + 1; later < end; ++later)
        if (starts(later) && date_end(text, later, date) == end) at = later;
      if (end == 0 && text.compare(at, compact.size(), compact) == 0 &&
          (at + compact.size() == text.size() || !is_digit(text[at + compact.size()])))
        end = at + compact.size();
      if (end > at && !choice.add({column.begin + at, column.begin + end})) return choice.best();
    }
  }
  return choice.best();
}

/// What is left without the last word, which may be cut short.
std::string_view without_last_word(std::string_view text) {
  size_t end = text.size();
  // A character that was cut short has become U+FFFD.
  while (text.substr(0, end).ends_with("\uFFFD")) end -= 3;
  do {
    if (end == 0) return {};
    end = character_before(text, end);
  } while (!splits_words(text, end));
  const std::string_view left = text.substr(0, end);
  return left.substr(0, left.find_last_not_of(" \t") + 1);
}

}  // namespace

std::vector<ColumnText> columns_of(const Record& record) {
  const std::string_view document = record.document;
  if (record.columns.empty()) return {{"document", document, 0}};
  std::vector<ColumnText> columns;
  for (size_t i = 0; i < record.columns.size(); ++i) {
    const auto& [name, begin, runs] = record.columns[i];
    const size_t end = i + 1 < record.columns.size() ? record.columns[i + 1].begin - 1 : document.size();
    columns.push_back({name, document.substr(begin, end - begin), begin, runs.get()});
  }
  return columns;
}

RowSpan span_of(const Record& record, const TextPlace& place) {
  const std::vector<ColumnText> columns = columns_of(record);
  const auto column = std::prev(std::ranges::upper_bound(columns, place.begin, {}, &ColumnText::begin));
  static const std::vector<TextRun> as_it_was;
  const auto [start, end] = original_place(column->runs ? *column->runs : as_it_was, column->text,
                                           place.begin - column->begin, place.end - column->begin);
  return {std::string(column->name), start, end};
}

bool PlaceChoice::add(const TextPlace& place) {
  const bool inside = entry_ && place.begin >= entry_->begin && place.end <= entry_->end;
  const auto distance = [&](const TextPlace& from) {
    return from.begin < entry_->begin ? entry_->begin - from.begin : from.begin - entry_->begin;
  };
  if (!best_ || inside || (entry_ && distance(place) < distance(*best_))) best_ = place;
  settled_ = !entry_ || inside;
  return !settled_;
}

std::optional<TextPlace> find_text(const Record& record, std::string_view text, PlaceChoice choice) {
  if (text.empty()) return std::nullopt;
  PlaceChoice folded = choice;
  find_folded(
      record, text, [](char c) { return c; }, choice);
  if (choice.settled()) return choice.best();
  find_folded(record, text, to_lower, folded);
  return folded.settled() || !choice.best() ? folded.best() : choice.best();
}

std::optional<TextPlace> find_number(const Record& record, double number, PlaceChoice choice) {
  for (const ColumnText& column : columns_of(record)) {
    const std::string_view text = column.text;
    for (size_t at = 0; at < text.size(); ++at) {
      if (!is_digit(text[at])) continue;
      size_t begin = number < 0 ? at - minus_bytes(text, at) : at;
      const bool no_whole = at > 0 && (text[at - 1] == ',' || text[at - 1] == '.');  // ".5", "-,50"
      if (begin == at && no_whole && (at == 1 || !is_digit(text[at - 2]))) --begin;
      const size_t plain = number_end(text, at, false), grouped = number_end(text, at, true);
      for (const size_t end : {grouped, plain})
        if (reads_as(text.substr(begin, end - begin), number)) {
          if (!choice.add({column.begin + begin, column.begin + end})) return choice.best();
          break;
        }
      // "12 128" may be two numbers; other marks than a space make one of them.
      at = grouped == plain || text[plain] == ' ' ? plain : grouped;
    }
  }
  return choice.best();
}

std::optional<TextPlace> find_date(const Record& record, std::string_view iso, PlaceChoice choice) {
  if (iso.size() != kIsoDate || read_date_text(iso).value != iso) return std::nullopt;
  return search_date(record, {.iso = iso}, std::move(choice));
}

namespace {

bool has_number(const Record& record, double number) {
  if (find_number(record, number)) return true;
  const std::vector<double> all = numbers_in(record.document);
  if (std::ranges::find(all, number) != all.end()) return true;
  const auto index = static_cast<size_t>(number);
  if (number < 0 || index >= std::size(kNumberWords) || static_cast<double>(index) != number) return false;
  return std::ranges::any_of(kNumberWords[index],
                             [&](std::string_view word) { return find_text(record, word).has_value(); });
}

/// Whether the document holds the date in some form, or its day and month in one place and its year in
/// another.
bool has_date(const Record& record, std::string_view iso) {
  if (iso.size() != kIsoDate || search_date(record, {.iso = iso, .any_locale = true})) return true;
  const std::string_view year = iso.substr(0, 4);
  return find_text(record, year) && search_date(record, {.iso = iso, .year = year, .any_locale = true});
}

}  // namespace

void check_digits(const Record& record, const Attribute& attribute, bool copied, RowAnswer& answer) {
  const auto stands = [&](const auto& held) {
    using Held = std::decay_t<decltype(held)>;
    if constexpr (std::is_same_v<Held, std::string>)
      return attribute.type != ValueType::date || has_date(record, held);
    else if constexpr (std::is_arithmetic_v<Held> && !std::is_same_v<Held, bool>)
      return has_number(record, static_cast<double>(held));
    else
      return true;
  };
  if (std::visit(stands, answer.value)) return;
  if (answer.note.empty()) answer.note = "not in the document";
  if (copied) answer.value = nullptr;
}

void bind_span(const Record& record, bool cut, RowAnswer& answer) {
  auto* text = std::get_if<std::string>(&answer.value);
  if (!text) return;
  std::string_view left = *text;
  auto place = find_text(record, left);
  const auto shorten = [&] {
    left = without_last_word(left);
    place = find_text(record, left);
  };
  if (!place && cut) shorten();
  while (place && cut && !may_end_value(record.document, place->end)) shorten();
  if (place) {
    *text = record.document.substr(place->begin, place->end - place->begin);
    return;
  }
  // Of what was cut inside its first word nothing is left, but it may well stand in the document.
  if (!cut || answer.note.empty())
    answer.note = "not in the document: \"" + valid_utf8(std::string_view(*text).substr(0, 60)) + '"';
  answer.value = nullptr;
}

void bind_values(const Record& record, const Attribute& attribute, bool copied, RowAnswer& answer) {
  const auto bind_fields = [&](RowObject& object) {
    for (size_t i = 0; i < object.values.size(); ++i)
      bind_values(record, attribute.fields[i], copied, object.values[i].answer);
  };
  if (auto* object = std::get_if<RowObject>(&answer.value)) return bind_fields(*object);
  if (auto* list = std::get_if<std::vector<RowObject>>(&answer.value)) {
    for (RowObject& entry : *list) bind_fields(entry);
    return;
  }
  if (attribute.type == ValueType::span) bind_span(record, false, answer);
  check_digits(record, attribute, copied, answer);
}

void note_made_up(const Record& record, RowAnswer& anchor) {
  const auto* text = std::get_if<std::string>(&anchor.value);
  if (text && anchor.note.empty() && !find_text(record, *text)) anchor.note = "not in the document";
}

std::vector<std::optional<RowSpan>> spans_of(const Record& record, const RowValue& value,
                                             const PlaceChoice& choice) {
  std::vector<std::optional<RowSpan>> spans;
  const auto add = [&](const std::optional<TextPlace>& place) {
    spans.push_back(place ? std::optional(span_of(record, *place)) : std::nullopt);
  };
  const auto visit = [&](const auto& held) {
    using Held = std::decay_t<decltype(held)>;
    if constexpr (std::is_same_v<Held, std::string>) {
      const auto place = find_text(record, held, choice);
      add(place ? place : find_date(record, held, choice));
    }
    if constexpr (std::is_same_v<Held, std::vector<std::string>>)
      for (const std::string& text : held) add(find_text(record, text, choice));
    else if constexpr (std::is_arithmetic_v<Held> && !std::is_same_v<Held, bool>)
      add(find_number(record, static_cast<double>(held), choice));
  };
  std::visit(visit, value);
  return spans;
}

Attribute as_converted(const Record& record, const Attribute& attribute, std::string_view text) {
  Attribute out = attribute;
  const size_t begin = text.find_first_of("0123456789");
  if (attribute.locale.decimal != Locale::Decimal::comma || begin == std::string_view::npos) return out;
  std::string digits(text.substr(begin, text.find_first_not_of("0123456789.", begin) - begin));
  if (find_text(record, digits)) return out;
  std::ranges::replace(digits, '.', ',');
  if (find_text(record, digits)) out.locale.decimal = Locale::Decimal::point;
  return out;
}

}  // namespace sheaf
