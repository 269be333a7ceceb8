#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Text as Python handles it, on every Unicode character: the official scoring scripts are Python, and a
/// score equals theirs only where each step does what theirs does. All text is valid UTF-8.
namespace sheaf::python {

std::string lower(std::string_view text);                    ///< str.lower()
std::vector<std::string_view> split(std::string_view text);  ///< str.split()
std::string_view strip(std::string_view text);               ///< str.strip()
std::optional<double> parse_number(std::string_view text);   ///< float(text), or nothing where that raises
std::string text_of(double value);                           ///< str(value)
double round_to_cents(double value);                         ///< round(value, 2)

/// Whether `point` is one of those that `\w` of `re` matches.
bool is_word(uint32_t point);

/// Whether `c` is one of string.punctuation.
constexpr bool is_punctuation(char c) {
  return (c > ' ' && c < '0') || (c > '9' && c < 'A') || (c > 'Z' && c < 'a') || (c > 'z' && c < 0x7F);
}

}  // namespace sheaf::python
