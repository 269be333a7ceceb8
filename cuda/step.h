#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <cuda_runtime.h>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "core/backend/footprint.h"
#include "core/engine/step_batch.h"
#include "cuda/attention/attention_plan.h"
#include "cuda/attention/documents.h"
#include "cuda/base/device_memory.h"
#include "cuda/ops/ops.h"
#include "cuda/stage_clock.h"

namespace sheaf::cuda {

/// Host arrays of a step packed into one pinned block and copied at once.
class Staging {
 public:
  void clear() { used_ = 0; }
  template <class T>
  int64_t add(std::span<const T> values) {
    const int64_t at = (used_ + 15) / 16 * 16;
    const auto bytes = static_cast<int64_t>(values.size_bytes());
    if (at + bytes > host_.size()) {
      PinnedMemory<std::byte> larger(std::max(2 * (at + bytes), int64_t{1} << 20));
      if (used_ > 0) std::memcpy(larger.data(), host_.data(), static_cast<size_t>(used_));
      host_ = std::move(larger);
    }
    if (bytes > 0) std::memcpy(host_.data() + at, values.data(), static_cast<size_t>(bytes));
    used_ = at + bytes;
    return at;
  }
  /// Changes what was added at `offset`.
  template <class T>
  void put(int64_t offset, const T& value) {
    std::memcpy(host_.data() + offset, &value, sizeof(T));
  }
  int64_t capacity() const { return host_.size(); }
  void send(std::byte* to, cudaStream_t stream) {
    check(cudaMemcpyAsync(to, host_.data(), static_cast<size_t>(used_), cudaMemcpyHostToDevice, stream),
          "sending a step");
  }

 private:
  PinnedMemory<std::byte> host_;
  int64_t used_ = 0;
};

/// Where a step's arrays are on the device.
struct StepArrays {
  const int32_t* tokens;                       ///< [rows]
  const int32_t* positions;                    ///< [rows]
  const int32_t* kv_slots;                     ///< [rows]
  std::vector<AttentionInputs> attention;      ///< [windows], on the host; their pointers are of the device
  const AttentionInputs* attention_on_device;  ///< [windows], the same
  std::vector<DocumentBlocks> documents;       ///< [windows], on the host; their items are on the device
  const int32_t* pick_rows;                    ///< [picks]
  const GreedyPick* greedy;                    ///< [picks]
  const int32_t* allowed;                      ///< token lists that `greedy` points into
  const ChainPick* chains;                     ///< [picks], or nothing where no pick has chains
  const ChainGroup* groups;                    ///< [picks that have chains]
};

/// Whether a pick's token is drawn, or its log-probabilities are listed, on the host, from logits that must
/// come there first.
inline bool on_host(const Pick& pick) {
  return pick.temperature > 0 || pick.listed != nullptr;
}

/// What a step in flight has of its own. All the rest (LoadedModel) is used by one step after the other.
struct Step {
  /// Plans the step's attention for each of the model's windows, and packs its arrays into `staging`.
  void pack(const AttentionPlanner& planner, std::span<const int32_t> windows);
  /// Fills in `arrays`, given where on the device the packed block will lie. To be called before it is sent.
  void place(const std::byte* device, int32_t page_size, bool in_order);
  /// Writes the tokens that the device picked to `picked`, once the step is done.
  void hand_back() const;

  int32_t rows() const { return batch->rows(); }
  /// Whether some rows weigh documents apart.
  bool weighs_documents() const {
    return std::ranges::any_of(plans, [](const AttentionPlan& plan) { return !plan.document_items.empty(); });
  }
  /// Partial results of attention that exist at once.
  int64_t partial_rows() const;
  /// Which kinds of attention blocks and merges each window has: one number for each answer.
  uint64_t attention_kinds() const;

  const StepBatch* batch = nullptr;
  std::span<Picked> picked;          ///< [picks]
  std::vector<AttentionPlan> plans;  ///< [windows]
  std::vector<ChainGroup> chain_groups;
  Staging staging;
  StepArrays arrays{};
  PinnedMemory<GreedyResult> chosen;  ///< [picks]
  PinnedMemory<int32_t> routed;       ///< ExpertRoom's offsets once the step is done
  StageClock clock;
  Event done{cudaEventDisableTiming};

 private:
  /// Packs an array, and has place() find it.
  template <class T, class OnDevice>
  void pack(const std::vector<T>& values, const OnDevice*& pointer) {
    static_assert(sizeof(T) == sizeof(OnDevice));
    const int64_t at = staging.add(std::span(values));
    places_.push_back([&pointer, at](const std::byte* device) {
      pointer = reinterpret_cast<const OnDevice*>(device + at);
    });
  }
  void pack_picks();
  void list_chains();

  std::vector<std::function<void(const std::byte*)>> places_;
  int64_t attention_at_ = 0;  ///< offset of the attention's inputs in the packed block
  std::vector<int32_t> picked_rows_;
  std::vector<GreedyPick> greedy_picks_;
  std::vector<ChainPick> chain_picks_;
};

struct LoadedModel;

/// The rows before the first layer: their angles, and their tokens' embeddings in the residual stream.
void start_rows(LoadedModel& model, const Step& step);

/// The experts of layer `index` and the MLP beside them: what they give is added to the residual stream, or
/// lies in the room's `y` where blocks are added apart. Reads `normed`, in FP8 models `normed8`, too.
void run_experts(LoadedModel& model, Step& step, int32_t index);

/// The first `layers` layers.
void run_layers(LoadedModel& model, Step& step, int32_t layers);

constexpr int64_t kPicksAtOnce = kCudaPicksAtOnce;

/// Picks the tokens of a step whose layers are run: greedy ones go to step.chosen; for those drawn on the
/// host it waits, and they are in step.picked when it returns. `logits`, where not empty, gets [picks,
/// vocab].
void pick_tokens(LoadedModel& model, const Step& step, std::span<float> logits);

}  // namespace sheaf::cuda
