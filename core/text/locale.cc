#include "core/text/locale.h"

#include <algorithm>
#include <fmt/ranges.h>
#include <vector>

#include "core/text/utf8.h"

namespace sheaf {
namespace {

constexpr auto by_point = Locale::Decimal::point, by_comma = Locale::Decimal::comma;
constexpr auto day_first = Locale::Dates::day_first, month_first = Locale::Dates::month_first;

struct Named {
  std::string_view name;
  Locale locale;
};

/// Languages, and countries that write otherwise than most of their language do (Unicode CLDR).
constexpr Named kLocales[] = {{"bg", {by_comma, day_first}},      {"cs", {by_comma, day_first}},
                              {"da", {by_comma, day_first}},      {"de", {by_comma, day_first}},
                              {"el", {by_comma, day_first}},      {"en", {by_point, Locale::Dates::unknown}},
                              {"es", {by_comma, day_first}},      {"et", {by_comma, day_first}},
                              {"fi", {by_comma, day_first}},      {"fr", {by_comma, day_first}},
                              {"he", {by_point, day_first}},      {"hi", {by_point, day_first}},
                              {"hr", {by_comma, day_first}},      {"hu", {by_comma, day_first}},
                              {"id", {by_comma, day_first}},      {"it", {by_comma, day_first}},
                              {"ja", {by_point, day_first}},      {"ko", {by_point, day_first}},
                              {"lt", {by_comma, day_first}},      {"lv", {by_comma, day_first}},
                              {"nb", {by_comma, day_first}},      {"nl", {by_comma, day_first}},
                              {"no", {by_comma, day_first}},      {"pl", {by_comma, day_first}},
                              {"pt", {by_comma, day_first}},      {"ro", {by_comma, day_first}},
                              {"ru", {by_comma, day_first}},      {"sk", {by_comma, day_first}},
                              {"sl", {by_comma, day_first}},      {"sv", {by_comma, day_first}},
                              {"th", {by_point, day_first}},      {"tr", {by_comma, day_first}},
                              {"uk", {by_comma, day_first}},      {"vi", {by_comma, day_first}},
                              {"zh", {by_point, day_first}},      {"de-ch", {by_point, day_first}},
                              {"de-li", {by_point, day_first}},   {"en-au", {by_point, day_first}},
                              {"en-gb", {by_point, day_first}},   {"en-ie", {by_point, day_first}},
                              {"en-in", {by_point, day_first}},   {"en-nz", {by_point, day_first}},
                              {"en-us", {by_point, month_first}}, {"en-za", {by_comma, day_first}},
                              {"es-mx", {by_point, day_first}},   {"es-us", {by_point, month_first}},
                              {"it-ch", {by_point, day_first}}};

const Locale* listed(std::string_view name) {
  const auto* found = std::ranges::find(kLocales, name, &Named::name);
  return found == std::end(kLocales) ? nullptr : &found->locale;
}

}  // namespace

std::optional<Locale> find_locale(std::string_view name) {
  std::string small;
  for (const char c : name) small += c == '_' ? '-' : small_letter(c);
  if (const Locale* whole = listed(small)) return *whole;
  const size_t dash = small.find('-');
  const bool country = dash != std::string::npos && small.size() - dash == 3;
  const Locale* language = country ? listed(small.substr(0, dash)) : nullptr;
  return language ? std::optional(*language) : std::nullopt;
}

std::string known_locales() {
  std::vector<std::string_view> languages;
  for (const Named& each : kLocales)
    if (each.name.size() == 2) languages.push_back(each.name);
  return fmt::format("a language ({}), alone or with a country: de, de-CH, en-US",
                     fmt::join(languages, ", "));
}

}  // namespace sheaf
