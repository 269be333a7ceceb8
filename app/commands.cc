#include "app/commands.h"

#include <algorithm>
#include <fmt/ranges.h>

#include "core/text/spelling.h"

namespace sheaf {

Trait value_name(const std::string& word) {
  return [=](CLI::Option& option) { option.type_name(word); };
}

Trait works_with(const std::string& other) {
  return [=](CLI::Option& option) { option.needs(other); };
}

Trait works_without(const std::string& other) {
  return [=](CLI::Option& option) { option.excludes(other); };
}

Trait checked(const CLI::Validator& check) {
  return [=](CLI::Option& option) { option.check(check); };
}

Trait one_of(const std::vector<std::string>& words) {
  return checked({[=](std::string& text) {
                    if (std::ranges::find(words, text) != words.end()) return std::string();
                    return fmt::format("unknown value \"{}\"{}", shorten_text(text, 60),
                                       suggest_spelling(text, words));
                  },
                  fmt::format("{{{}}}", fmt::join(words, ","))});
}

Trait number_from(double least, double most) {
  const std::string wanted = fmt::format("a number from {} to {}", least, most);
  return checked({[=](std::string& text) {
                    double value = 0;
                    if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most)
                      return std::string();
                    return fmt::format("must be {}; got {}", wanted, shorten_text(text, 60));
                  },
                  wanted});
}

namespace {

/// "; write 5000000" for 5m, 5,000,000 and 5_000_000; empty for what is no such number.
std::string in_digits(const std::string& text) {
  std::string digits = text;
  std::erase_if(digits, [](char c) { return c == ',' || c == '_'; });
  const size_t letter = digits.find_first_not_of("0123456789");
  if (letter == 0 || digits.size() > 12) return {};
  if (letter == std::string::npos) return digits == text ? "" : "; write " + digits;
  const std::string unit = digits.substr(letter);
  const char* const zeros = unit == "k" || unit == "K"   ? "000"
                            : unit == "m" || unit == "M" ? "000000"
                                                         : nullptr;
  return zeros ? "; write " + digits.substr(0, letter) + zeros : std::string();
}

}  // namespace

std::string not_whole(const std::string& text, const std::string& wanted, const std::string& both) {
  const bool large = text.size() > 9 && text.find_first_not_of("0123456789") == std::string::npos;
  return fmt::format("must be {}; got {}{}", large ? both : wanted, shorten_text(text, 60), in_digits(text));
}

}  // namespace sheaf
