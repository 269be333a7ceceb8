#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/base/file_layer.h"
#include "io/base/sha256.h"
#include "io/run_folder/manifest.h"

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

/// How far a run is.
struct RunProgress {
  int64_t position = 0, rows = 0, rejects = 0;
  int64_t file = 0, file_rows = 0, file_bytes = 0;  ///< the rows file being filled
  int64_t rejects_bytes = 0;
  bool may_end = true;  ///< the rows file, here
  std::string file_sha256 = sha256(""), rejects_sha256 = sha256("");

  nlohmann::ordered_json json() const;  ///< as the line that ends a group
};

/// What a journal says of its run.
struct JournalRun {
  nlohmann::ordered_json fingerprint;
  RunSources sources;
  /// One a line: where the run could resume, as long as the files hold what it says.
  std::vector<RunProgress> places;
  std::vector<PublishedFile> published;
};
/// Nothing where a line was not written by sheaf: the sums of the lines keep out damage, not somebody who
/// computes them again.
std::optional<JournalRun> read_run(const JournalText& journal);

/// What a run that is not finished has committed so far: as its manifest, with the files that still grow
/// (.part) as far as they are committed. Refuses a folder without a run, and a journal that sheaf did not
/// write.
Manifest committed_so_far(const std::string& folder);

/// A line as it is written after one whose sum is `before`; empty for the first.
std::string journal_line(const nlohmann::ordered_json& record, const std::string& before);

/// Adds lines to a journal, each durable before the call returns.
class JournalWriter {
 public:
  /// Continues after `last`; what follows it is cut off.
  JournalWriter(FileLayer& files, const std::string& path, const JournalLine& last);
  void append(const nlohmann::ordered_json& record);

 private:
  std::unique_ptr<OutputFile> file_;
  std::string sum_;
};

}  // namespace sheaf
