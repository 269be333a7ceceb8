#pragma once
#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace sheaf {

/// Several mistakes of the user that were found in one go, each a message of its own.
class Mistakes : public Error {
 public:
  /// `all`: at least one.
  explicit Mistakes(std::vector<std::string> all) : Error(Fault::input, joined(all)), all_(std::move(all)) {}
  const std::vector<std::string>& all() const { return all_; }

 private:
  static std::string joined(const std::vector<std::string>& all) {
    std::string text;
    for (const std::string& one : all) text += (text.empty() ? "" : "; ") + one;
    return text;
  }

  std::vector<std::string> all_;
};

/// Mistakes of the user as they are found, so that one run names all of them.
class MistakeList {
 public:
  /// Runs a check that may refuse, and returns whether it did not. Other faults pass through.
  template <class Check>
  bool attempt(Check&& check) {
    try {
      check();
      return true;
    } catch (const Mistakes& several) {
      for (const std::string& one : several.all()) add(one);
    } catch (const Error& error) {
      if (error.fault() != Fault::input) throw;
      add(error.what());
    }
    return false;
  }

  void add(const std::string& message) {
    if (std::ranges::find(found_, message) == found_.end()) found_.push_back(message);
  }

  size_t size() const { return found_.size(); }
  bool empty() const { return found_.empty(); }
  const std::vector<std::string>& all() const { return found_; }
  /// Whether there are so many that looking for more is not worth it.
  bool full() const { return found_.size() > kMostTold; }

  /// Puts messages about a file in the order of its lines; others, such as those of options, follow.
  void sort_by_line(const std::string& path) {
    const auto line_of = [&](const std::string& message) {
      int line = std::numeric_limits<int>::max();
      if (message.starts_with(path + ":"))
        std::from_chars(message.data() + path.size() + 1, message.data() + message.size(), line);
      return line;
    };
    std::ranges::stable_sort(found_, {}, line_of);
  }

  /// Leaves the first ones and says that there are more. `place`: of what was read.
  void shorten(const std::string& place) {
    if (!full()) return;
    found_.resize(kMostTold);
    found_.push_back(place + ": there are more mistakes; correct these first");
  }

  /// Throws what was found: one as it is, several as Mistakes.
  void finish() const {
    if (found_.size() == 1) refuse("{}", found_.front());
    if (found_.size() > 1) throw Mistakes(found_);
  }

 private:
  static constexpr size_t kMostTold = 20;

  std::vector<std::string> found_;
};

}  // namespace sheaf
