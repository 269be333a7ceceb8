#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace sheaf {

/// What a model wrote under one number of a list.
struct ListEntry {
  int32_t count = 0;  ///< how often the number occurs; more than once: ambiguous, so null
  std::string text;   ///< its line, of the first
  bool last = false;  ///< nothing stands after it
};

/// Splits a numbered list ("1. red\n2) blue") into `questions` entries. `beyond` becomes the highest number
/// above that, or 0. Lines without a number are left out.
std::vector<ListEntry> split_list(std::string_view text, size_t questions, size_t& beyond);

}  // namespace sheaf
