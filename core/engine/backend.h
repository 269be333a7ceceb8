#pragma once
#include <array>
#include <memory>

#include "core/backend/footprint.h"
#include "core/base/error.h"
#include "core/engine/routing.h"
#include "core/engine/step_batch.h"

namespace sheaf {

/// What the device works on in a step.
enum class Stage { heads, attention, attention_output, mlp_up, mlp_down, norms, pick, other };

/// As reports call them.
constexpr std::array kStageNames = {"heads", "attention", "attention_output", "mlp_up", "mlp_down", "norms",
                                    "pick",  "other"};
constexpr const char* stage_name(Stage stage) {
  return kStageNames[static_cast<size_t>(stage)];
}

/// Seconds by stage; empty where they are not measured.
using TimedStages = std::vector<std::pair<Stage, double>>;

/// How keys and values leave a pool, and come back.
enum class KvForm : uint8_t {
  computed,  ///< as they lie there: they come back the same to the bit
  /// In whole numbers of 8 bits, with a scale for the key and one for the value of each head: the largest
  /// absolute value / 127. A number comes back within half a scale.
  rounded,
};

/// Runs step batches of one model. Every backend passes the tests in tests/cpu and tests/engine.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual const ModelConfig& config() const = 0;
  /// "CPU, fp32, 2 threads".
  virtual std::string describe() const = 0;
  /// What a device profile is for: the same on every device of a kind. "NVIDIA H200".
  virtual std::string device() const { return describe(); }

  /// Makes the paged key/value pool, before the first step. May be called again with fewer pages where it
  /// throws OutOfMemory.
  virtual void allocate_kv(int32_t pages, int32_t page_size) = 0;
  /// Whether making the pool takes time, so that a short job should begin with a small one.
  virtual bool grows_kv() const { return false; }
  /// Makes the pool larger while no step is in flight; what is in it stays. Throws OutOfMemory and leaves it
  /// as it is where the old and the new one do not fit together.
  virtual void grow_kv(int32_t pages) { fail("a pool cannot grow to {} pages here", pages); }
  /// Gives back what the pool and the steps took, until the next allocate_kv().
  virtual void free_kv() {}
  virtual int64_t kv_bytes_per_token() const = 0;

  /// How keys and values are computed and laid out, in words: they are of use to a backend that says the
  /// same. Empty: they cannot leave the pool.
  virtual std::string kv_kind() const { return {}; }
  /// Of one slot, all layers together, as the next two move them.
  virtual int64_t kv_slot_bytes(KvForm /*form*/) const { return 0; }
  /// Copies what finished steps wrote into slots of the pool out of it, and such bytes into slots for the
  /// steps that are started afterwards.
  virtual void read_kv(std::span<const int32_t> /*slots*/, std::span<std::byte> /*to*/, KvForm /*form*/) {
    fail("keys and values cannot be read here");
  }
  virtual void write_kv(std::span<const int32_t> /*slots*/, std::span<const std::byte> /*from*/,
                        KvForm /*form*/) {
    fail("keys and values cannot be written here");
  }
  /// Memory that bytes move from and to quickly.
  virtual std::shared_ptr<std::byte> host_memory(int64_t bytes) {
    return {new std::byte[bytes], std::default_delete<std::byte[]>()};
  }

  /// Whether answers stay the same to the bit only where keys lie in whole pages (Residents).
  virtual bool wants_whole_pages() const { return false; }

  /// Runs one step. Throws OutOfMemory before anything of it is done where a smaller one may still fit.
  /// `picked` gets one entry per pick. `logits`, where not empty, receives [picks × vocab].
  virtual void step(const StepBatch& batch, std::span<Picked> picked, std::span<float> logits = {}) = 0;

  /// Steps that may be started before the first of them is finished.
  virtual int32_t steps_at_once() const { return 1; }
  /// Starts a step; `batch` and `picked` stay as they are until it is finished. Steps are carried out in the
  /// order of their starts, so a later one sees what an earlier one writes. Throws OutOfMemory as step()
  /// does; the steps in flight are not harmed.
  virtual void start(const StepBatch& batch, std::span<Picked> picked) { step(batch, picked); }
  /// Waits for the oldest step started and not finished; then its tokens are picked. It is over even where
  /// this throws.
  virtual void finish() {}

  /// Rows a step should hold to keep the machine busy.
  virtual int32_t preferred_tokens() const = 0;

  /// Of the device, over all finished steps.
  virtual TimedStages stage_seconds() const { return {}; }
  /// Of all finished steps; empty where the model has no experts or the backend does not count.
  virtual Routing routing() const { return {}; }
};

/// Sees the steps of an engine in their order.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void start(const StepBatch& batch) = 0;
  /// The oldest step that was started is waited for.
  virtual void finish() = 0;
};

/// A backend that computes nothing and always picks the first allowed token: the decode loop over it counts
/// the steps, rows and pages that a real one would need.
class CountingBackend : public Backend {
 public:
  CountingBackend(const ModelConfig& config, int64_t kv_bytes_per_token, int32_t rows)
      : config_(config), kv_bytes_per_token_(kv_bytes_per_token), rows_(rows) {}
  const ModelConfig& config() const override { return config_; }
  std::string describe() const override { return "nothing is computed"; }
  void allocate_kv(int32_t, int32_t) override {}
  int64_t kv_bytes_per_token() const override { return kv_bytes_per_token_; }
  int32_t preferred_tokens() const override { return rows_; }
  void step(const StepBatch& batch, std::span<Picked> picked, std::span<float>) override {
    for (size_t i = 0; i < picked.size(); ++i) {
      const Pick& pick = batch.picks[i];
      picked[i] = {pick.allowed_count > 0 ? batch.allowed[pick.first_allowed] : 0, 0.0f};
      for (int32_t k = 0; pick.listed && k < pick.allowed_count; ++k) pick.listed[k] = 0;
    }
  }

 private:
  const ModelConfig& config_;
  int64_t kv_bytes_per_token_;
  int32_t rows_;
};

}  // namespace sheaf
