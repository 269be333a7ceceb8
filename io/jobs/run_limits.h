#pragma once
#include <cstdint>
#include <string>

#include "core/task/record.h"
#include "io/files/job_fingerprint.h"

namespace sheaf {

/// "2/8": the third of eight; empty: all of it. Windows are dealt out in runs, so that records which could
/// share a prompt stay together.
Shard choose_shard(const std::string& text, Corpus& corpus, int32_t window);

/// "100" or "2.5%": how many rejects a job bears; empty: any number.
class MostRejects {
 public:
  explicit MostRejects(const std::string& text);

  /// After a window: refuses to go on where there are more among the first `records` records.
  void check(int64_t rejects, int64_t records, const std::string& folder) const;

 private:
  std::string text_;
  double most_ = 0;
  bool percent_ = false;
};

}  // namespace sheaf
