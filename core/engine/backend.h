#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/base/error.h"
#include "core/engine/kv_form.h"
#include "core/engine/stage.h"
#include "core/engine/step_batch.h"
#include "core/model/footprint.h"

namespace sheaf {

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
    return {new std::byte[static_cast<size_t>(bytes)], std::default_delete<std::byte[]>()};
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
};

}  // namespace sheaf
