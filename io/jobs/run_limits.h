#pragma once
#include "core/job/job.h"
#include "core/task/record.h"
#include "io/base/descriptor.h"
#include "io/base/file_identity.h"
#include "io/files/job_fingerprint.h"

namespace sheaf {

/// The files of weights that a run computes with. They are mapped, not copied, so a file that is written over
/// in its place gives rows of neither state. One that was replaced by another of its name, or removed, is
/// still whole.
class HeldWeights {
 public:
  /// Leaves out what cannot be opened: loading the model says why.
  explicit HeldWeights(const Job::ModelPart& model);
  /// Refuses where one of them was written over since.
  void check() const;

 private:
  struct Held {
    std::string path;
    Descriptor file;
    FileIdentity before;
  };

  std::vector<Held> files_;
};

/// "2/8": the third of eight; "auto": the part that the scheduler gave this process, of `shards` (0: as the
/// scheduler says); empty: all of the corpus. Windows are dealt out in runs, so that records which could
/// share a prompt stay together.
Shard choose_shard(const std::string& asked, int64_t shards, Corpus& corpus, int32_t window);

/// "100" or "2.5%": how many rejects a job bears; empty: any number.
class MostRejects {
 public:
  explicit MostRejects(const std::string& text);

  /// After a window: refuses to continue where there are more among the first `records` records. `said_in`:
  /// which file says why; empty: none.
  void check(int64_t rejects, int64_t records, const std::string& said_in) const;

 private:
  std::string text_;
  bool percent_;
  double most_ = 0;
};

}  // namespace sheaf
