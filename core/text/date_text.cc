#include "core/text/date_text.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <utility>
#include <vector>

#include "core/text/utf8.h"

namespace sheaf {
namespace {

/// Numbers and words of a date, and what stands before each.
struct DatePart {
  std::string word;  ///< in small letters
  bool number = false;
  char before = 0;
};

std::vector<DatePart> date_parts(std::string_view text) {
  std::vector<DatePart> parts;
  char before = 0;
  bool accented = false;  // the byte is the second one of é or ä
  for (const char c : text) {
    const char low = small_letter(c);
    const bool second = std::exchange(accented, c == '\xC3');
    const bool digit = c >= '0' && c <= '9', letter = (low >= 'a' && low <= 'z') || accented || second;
    if (!digit && !letter) {
      before = before == 0 || before == ' ' ? c : before;
      continue;
    }
    if (before != 0 || parts.empty() || parts.back().number != digit) parts.push_back({"", digit, before});
    parts.back().word += low;
    before = 0;
  }
  return parts;
}

/// Names of the months in English, German, French, Spanish, Italian, Dutch and Portuguese.
constexpr std::string_view kMonths[12][13] = {
    {"january", "jan", "januar", "janvier", "janv", "enero", "ene", "gennaio", "gen", "januari", "janeiro"},
    {"february", "feb", "februar", "février", "févr", "febrero", "febbraio", "februari", "fevereiro", "fev"},
    {"march", "mar", "märz", "mär", "mars", "marzo", "maart", "mrt", "março"},
    {"april", "apr", "avril", "avr", "abril", "abr", "aprile"},
    {"may", "mai", "mayo", "maggio", "mag", "mei", "maio"},
    {"june", "jun", "juni", "juin", "junio", "giugno", "giu", "junho"},
    {"july", "jul", "juli", "juillet", "juil", "julio", "luglio", "lug", "julho"},
    {"august", "aug", "août", "agosto", "ago", "augustus"},
    {"september", "sep", "sept", "septembre", "septiembre", "settembre", "set", "setembro"},
    {"october", "oct", "oktober", "okt", "octobre", "octubre", "ottobre", "ott", "outubro", "out"},
    {"november", "nov", "novembre", "noviembre", "novembro"},
    {"december", "dec", "dezember", "dez", "décembre", "déc", "diciembre", "dic", "dicembre", "dezembro"}};

/// 1 to 12, or 0.
unsigned month_named(std::string_view word) {
  for (unsigned month = 0; month < std::size(kMonths); ++month)
    if (!word.empty() && std::ranges::find(kMonths[month], word) != std::end(kMonths[month]))
      return month + 1;
  return 0;
}

DateText date_of(unsigned year, unsigned month, unsigned day) {
  using namespace std::chrono;
  const year_month_day date{std::chrono::year(static_cast<int>(year)), std::chrono::month(month),
                            std::chrono::day(day)};
  if (!date.ok() || year < 1000) return {"", DateText::Trouble::no_date};
  return {fmt::format("{:04}-{:02}-{:02}", year, month, day)};
}

unsigned number_of(const DatePart& part) {
  return static_cast<unsigned>(std::stoul(part.word));
}

bool is_year(const DatePart& part) {
  return part.number && part.word.size() == 4;
}

/// 3rd: the letters after a day.
bool is_ordinal(const DatePart& part) {
  return part.before == 0 && (part.word == "st" || part.word == "nd" || part.word == "rd" ||
                              part.word == "th" || part.word == "er");
}

}  // namespace

DateText read_date_text(std::string_view text, const Locale& locale) {
  static const DateText none{"", DateText::Trouble::no_date}, unclear{"", DateText::Trouble::unclear};
  if (text.size() > 64) return none;
  std::vector<DatePart> parts = date_parts(text);
  std::erase_if(parts, is_ordinal);
  std::erase_if(parts, [](const DatePart& part) { return part.word == "of" || part.word == "de"; });
  const auto is_long = [](const DatePart& part) { return part.number && part.word.size() > 4; };
  if (parts.size() < 3 || std::ranges::any_of(parts, is_long)) return none;
  const DatePart &a = parts[0], &b = parts[1], &c = parts[2];
  // 2026-03-01, and perhaps T12:30:00Z.
  if (is_year(a) && b.number && c.number) {
    const bool time = parts.size() > 3 && (parts[3].word == "t" || parts[3].before == ' ');
    return parts.size() == 3 || time ? date_of(number_of(a), number_of(b), number_of(c)) : none;
  }
  if (parts.size() > 3) return none;
  const unsigned first = month_named(a.word), second = month_named(b.word);
  if (first != 0 || second != 0) {
    const DatePart& day = first != 0 ? b : a;
    if (!day.number || !c.number) return none;
    return is_year(c) ? date_of(number_of(c), first != 0 ? first : second, number_of(day)) : unclear;
  }
  if (!a.number || !b.number || !c.number) return none;
  if (!is_year(c)) return unclear;
  const unsigned x = number_of(a), y = number_of(b), year = number_of(c);
  if (b.before == '.' || x > 12 || x == y) return date_of(year, y, x);  // with dots the day comes first
  if (y <= 12 && locale.dates == Locale::Dates::unknown) return unclear;
  return y > 12 || locale.dates == Locale::Dates::month_first ? date_of(year, x, y) : date_of(year, y, x);
}

}  // namespace sheaf
