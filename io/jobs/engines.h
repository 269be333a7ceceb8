#pragma once

#include "core/estimate/device_model.h"
#include "io/jobs/opened_job.h"
#include "io/kv_store/disk_kv_store.h"

namespace sheaf {

/// The engines of a job, one for each of its devices, with what their steps are predicted to take where the
/// device has a profile.
class Engines {
 public:
  using Replace = std::function<std::unique_ptr<Backend>(size_t engine, std::unique_ptr<Backend> backend)>;

  /// What of the job is used.
  struct Use {
    bool predict = false;   ///< profiles, where there are any
    bool speculate = true;  ///< as the job says, or not at all
    /// The job's store of keys and values: not at all; as long as that makes nothing slower; or to be filled
    /// with all that is computed.
    enum class Store : uint8_t { none, used, filled } store = Store::none;
  };

  /// `replace`: what is to compute in place of a backend.
  Engines(OpenedJob& opened, const Use& use, const Replace& replace = {});

  size_t size() const { return all_.size(); }
  std::vector<Engine*> pointers();
  const Backend& backend(size_t engine) const { return *all_[engine].backend; }
  /// What the backend took for this job.
  TimedStages stage_seconds(size_t engine) const;
  /// As the backend counted for this job; empty where the counts are of earlier jobs too.
  Routing routing(size_t engine) const;
  /// None where its device has no profile. To be asked on its engine's thread.
  std::optional<double> predicted_seconds(size_t engine) const;
  double predicted_error() const;  ///< as a share
  DiskKvStore* store() { return store_ ? &*store_ : nullptr; }
  /// "CPU, fp32, NEON, 2 threads", "NVIDIA H200 (cuda:0), bf16 and 7 more".
  std::string describe() const;
  /// As describe(), of one; engines that are alike are numbered.
  std::string name(size_t engine) const;

 private:
  struct One {
    std::shared_ptr<Backend> backend;
    TimedStages stages_before = {};  ///< what earlier jobs took
    bool routed_before = false;      ///< its counts of experts are of earlier jobs too
    std::unique_ptr<Backend> draft_backend = {};
    std::optional<Draft> draft = {};
    std::optional<DeviceModel> device = {};
    std::optional<PredictedTime> predicted = {};
    std::optional<Engine> engine = {};
  };
  void open_store(OpenedJob& opened, bool filled);
  void make_drafts(OpenedJob& opened);

  std::deque<One> all_;               ///< an engine points to its backend, and to the store
  std::optional<DiskKvStore> store_;  ///< whose threads use a backend's memory: it goes first
};

}  // namespace sheaf
