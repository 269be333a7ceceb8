#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "io/base/file_layer.h"

namespace sheaf {

constexpr int64_t kLargestJournal = int64_t{4} << 30;  // bytes

/// One line of a journal: 16 hex digits, a space, a JSON object. The digits sum up the object and the digits
/// of the line before it, so a line that was changed, moved or left out breaks all that follow.
struct JournalLine {
  nlohmann::ordered_json record;
  std::string sum;
  int64_t end = 0;  ///< the byte after it
};

struct JournalText {
  std::vector<JournalLine> lines;  ///< up to the first that is cut or does not check
  bool whole = true;               ///< nothing follows them
};
JournalText read_journal(std::string_view text);

/// A line as it is written after one whose sum is `before`; empty for the first.
std::string journal_line(const nlohmann::ordered_json& record, const std::string& before);

/// Adds lines to a journal, each durable before the call returns.
class JournalWriter {
 public:
  /// Goes on after `last`; what follows it is cut off.
  JournalWriter(FileLayer& files, const std::string& path, const JournalLine& last);
  void append(const nlohmann::ordered_json& record);

 private:
  std::unique_ptr<OutputFile> file_;
  std::string sum_;
};

}  // namespace sheaf
