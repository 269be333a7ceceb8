#pragma once
#include <cstddef>
#include <cuda_runtime.h>
#include <span>
#include <vector>

#include "core/engine/step_batch.h"
#include "cuda/attention/attention_plan.h"
#include "cuda/base/device_memory.h"
#include "cuda/base/staging.h"
#include "cuda/ops/ops.h"
#include "cuda/stage_clock.h"

namespace sheaf::cuda {

/// Where a step's arrays are on the device.
struct StepArrays {
  const int32_t* tokens;                       ///< [rows]
  const int32_t* positions;                    ///< [rows]
  const int32_t* kv_slots;                     ///< [rows]
  AttentionInputs attention;                   ///< on the host; its pointers are of the device
  const AttentionInputs* attention_on_device;  ///< [1], the same
  const int32_t* pick_rows;                    ///< [picks]
  const GreedyPick* greedy;                    ///< [picks]
  const int32_t* allowed;                      ///< token lists that `greedy` points into
  const ChainPick* chains;                     ///< [picks], or nothing where no pick has chains
  const ChainGroup* groups;                    ///< [picks that have chains]
};

/// Whether a pick's token is drawn on the host, from logits that must come there first.
inline bool on_host(const Pick& pick) {
  return pick.temperature > 0;
}

/// What a step in flight has of its own. All the rest (LoadedModel) is used by one step after the other.
struct Step {
  Step();
  ~Step();
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  /// Plans the step's attention and packs its arrays into `staging`.
  void pack(AttentionPlanner& planner);
  /// Finds `arrays`, given where on the device the packed block will lie. To be called before it is sent.
  void place(const std::byte* device, int32_t page_size, bool in_order);
  /// Writes the tokens that the device picked to `picked`, once the step is done.
  void hand_back() const;

  int32_t rows() const { return batch->rows(); }

  const StepBatch* batch = nullptr;
  std::span<Picked> picked;  ///< [picks]
  AttentionPlan plan;
  std::vector<ChainGroup> chain_groups;
  Staging staging;
  StepArrays arrays{};
  PinnedMemory<GreedyResult> chosen;  ///< [picks]
  StageClock clock;
  cudaEvent_t done = nullptr;

 private:
  /// Offsets in the packed block.
  struct Offsets {
    int64_t tokens, positions, kv_slots, attention;
    int64_t items, attended, pages, merged_rows, partial_begin, partials, copies, seen_pages;
    int64_t chains, groups, pick_rows, greedy, allowed;
  };
  void pack_plan();
  void pack_picks();
  void list_chains();

  Offsets at_{};
  std::vector<int32_t> picked_rows_;
  std::vector<GreedyPick> greedy_picks_;
  std::vector<ChainPick> chain_picks_;
};

}  // namespace sheaf::cuda
