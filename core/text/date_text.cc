#include "core/text/date_text.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <set>
#include <span>
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

/// In small letters, ä and é too, with plain spaces.
std::string small_plain(std::string_view text) {
  std::string plain;
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const auto byte = static_cast<unsigned char>(text[at]);
    if (const size_t space = special_space(rest); space > 0) {
      plain += ' ';
      at += space;
    } else if (byte == 0xC3 && rest.size() > 1) {
      const auto second = static_cast<unsigned char>(rest[1]);
      plain += text[at];
      plain += static_cast<char>(second >= 0x80 && second <= 0x9E && second != 0x97 ? second + 0x20 : second);
      at += 2;
    } else {
      plain += small_letter(text[at++]);
    }
  }
  return plain;
}

std::vector<DatePart> date_parts(std::string_view text) {
  std::vector<DatePart> parts;
  char before = 0;
  bool accented = false;  // the byte is the second one of é or ä
  for (const char c : small_plain(text)) {
    const bool second = std::exchange(accented, c == '\xC3');
    const bool digit = c >= '0' && c <= '9', letter = (c >= 'a' && c <= 'z') || accented || second;
    if (!digit && !letter) {
      before = before == 0 || before == ' ' ? c : before;
      continue;
    }
    if (before != 0 || parts.empty() || parts.back().number != digit) parts.push_back({"", digit, before});
    parts.back().word += c;
    before = 0;
  }
  return parts;
}

/// Days of the week and articles that may stand before a date.
bool may_stand_before(std::string_view word) {
  static const std::set<std::string_view> words = {
      "monday",    "mon",     "tuesday",  "tue",      "tues",      "wednesday", "wed",      "thursday",
      "thu",       "thur",    "thurs",    "friday",   "fri",       "saturday",  "sat",      "sunday",
      "sun",       "montag",  "mo",       "dienstag", "di",        "mittwoch",  "mi",       "donnerstag",
      "do",        "freitag", "fr",       "samstag",  "sonnabend", "sa",        "sonntag",  "so",
      "lundi",     "lun",     "mardi",    "mar",      "mercredi",  "mer",       "jeudi",    "jeu",
      "vendredi",  "ven",     "samedi",   "sam",      "dimanche",  "dim",       "lunes",    "martes",
      "miércoles", "mié",     "jueves",   "jue",      "viernes",   "vie",       "sábado",   "sáb",
      "domingo",   "dom",     "lunedì",   "martedì",  "mercoledì", "giovedì",   "gio",      "venerdì",
      "sabato",    "sab",     "domenica", "maandag",  "ma",        "dinsdag",   "woensdag", "wo",
      "donderdag", "vrijdag", "vr",       "zaterdag", "za",        "zondag",    "zo",       "segunda",
      "terça",     "quarta",  "quinta",   "sexta",    "feira",     "den",       "der",      "am",
      "on",        "the",     "le",       "el",       "il",        "op",        "em"};
  return words.contains(word);
}

/// Whether the parts are a time of day: 14:30, "at 2 pm", "um 19 Uhr", "à 20h30".
bool is_time(std::span<const DatePart> parts) {
  static const std::set<std::string_view> before = {"at", "um", "ab", "à", "a", "las", "alle", "ore", "om"},
                                          after = {"uhr", "h", "am",    "pm",  "a",  "p",
                                                   "m",   "o", "clock", "utc", "gmt"};
  size_t numbers = 0;
  for (const DatePart& part : parts) {
    if (part.number && ++numbers > 3) return false;
    if (part.number && (part.word.size() > 2 || std::stoul(part.word) > 59)) return false;
    if (!part.number && !(numbers == 0 ? before : after).contains(part.word)) return false;
  }
  return numbers > 0;
}

/// Names of the months in English, German, French, Spanish, Italian, Dutch and Portuguese.
constexpr std::string_view kMonths[12][16] = {
    {"january", "jan", "januar", "janvier", "janv", "enero", "ene", "gennaio", "gen", "januari", "janeiro",
     "jänner", "jän", "jaenner"},
    {"february", "feb", "februar", "février", "févr", "febrero", "febbraio", "februari", "fevereiro", "fev",
     "fév", "fevrier", "fevr", "feber"},
    {"march", "mar", "märz", "mär", "mars", "marzo", "maart", "mrt", "março", "mrz", "maerz"},
    {"april", "apr", "avril", "avr", "abril", "abr", "aprile"},
    {"may", "mai", "mayo", "maggio", "mag", "mei", "maio"},
    {"june", "jun", "juni", "juin", "junio", "giugno", "giu", "junho"},
    {"july", "jul", "juli", "juillet", "juil", "julio", "luglio", "lug", "julho"},
    {"august", "aug", "août", "aout", "agosto", "ago", "augustus"},
    {"september", "sep", "sept", "septembre", "septiembre", "settembre", "set", "setembro"},
    {"october", "oct", "oktober", "okt", "octobre", "octubre", "ottobre", "ott", "outubro", "out"},
    {"november", "nov", "novembre", "noviembre", "novembro"},
    {"december", "dec", "dezember", "dez", "décembre", "déc", "diciembre", "dic", "dicembre", "dezembro",
     "decembre"}};

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

/// A date, with nothing before it.
DateText date_of_parts(std::span<const DatePart> parts, const Locale& locale) {
  static const DateText none{"", DateText::Trouble::no_date}, unclear{"", DateText::Trouble::unclear};
  if (parts.size() < 3) return none;
  const DatePart &a = parts[0], &b = parts[1], &c = parts[2];
  // 2026-03-01, and perhaps T12:30:00Z.
  if (is_year(a) && b.number && c.number) {
    const bool time = parts.size() > 3 && (parts[3].word == "t" || parts[3].before == ' ');
    return parts.size() == 3 || time ? date_of(number_of(a), number_of(b), number_of(c)) : none;
  }
  if (parts.size() > 3 && !is_time(parts.subspan(3))) return none;
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

}  // namespace

size_t special_space(std::string_view text) {
  for (const std::string_view space : {"\u00A0", "\u2007", "\u2008", "\u2009", "\u200A", "\u202F"})
    if (text.starts_with(space)) return space.size();
  return 0;
}

DateText read_date_text(std::string_view text, const Locale& locale) {
  static const DateText none{"", DateText::Trouble::no_date};
  if (text.size() > 64) return none;
  std::vector<DatePart> parts = date_parts(text);
  std::erase_if(parts, is_ordinal);
  std::erase_if(parts, [](const DatePart& part) {
    return part.word == "of" || part.word == "de" || part.word == "del";
  });
  const auto is_long = [](const DatePart& part) { return part.number && part.word.size() > 4; };
  if (std::ranges::any_of(parts, is_long)) return none;
  std::span<const DatePart> rest = parts;
  DateText date = date_of_parts(rest, locale);
  // "mar" is a day of the week only where no date begins with it.
  while (date.trouble == DateText::Trouble::no_date && rest.size() > 3 && may_stand_before(rest[0].word)) {
    rest = rest.subspan(1);
    date = date_of_parts(rest, locale);
  }
  return date;
}

}  // namespace sheaf
