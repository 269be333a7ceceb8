#pragma once
#include <string>

#include "core/base/error.h"
#include "core/task/record.h"

namespace sheaf {

/// Options of a question that letters can tell apart.
constexpr size_t kMostOptions = 26;

/// "A" for the first.
inline std::string option_letter(size_t option) {
  return std::string(1, static_cast<char>('A' + option));
}

/// Refuses a question with more options than there are letters.
inline void check_options(const Question& question) {
  if (question.options.size() > kMostOptions)
    refuse("a question has {} options; give it at most {}, one for each letter", question.options.size(),
           kMostOptions);
}

}  // namespace sheaf
