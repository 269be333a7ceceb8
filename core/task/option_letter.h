#pragma once
#include <string>

namespace sheaf {

/// Options of a question that letters can tell apart.
constexpr size_t kMostOptions = 26;

/// "A" for the first.
inline std::string option_letter(size_t option) {
  return std::string(1, static_cast<char>('A' + option));
}

}  // namespace sheaf
