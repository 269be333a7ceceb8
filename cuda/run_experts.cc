#include "cuda/gemm/grouped.h"
#include "cuda/loaded_model.h"
#include "cuda/step.h"

namespace sheaf::cuda {
namespace {

/// Whether CUTLASS multiplies: wherever it was built for this GPU. With Qwen3-30B-A3B's experts on an H200 it
/// is 1.5 times as fast as our kernel at 64 rows and 1.9 times at 8,192, copied rows and gates included
/// (bench_experts).
bool by_cutlass(const LoadedModel& model) {
  return model.room.experts.cutlass.size() > 0;
}

/// activation(gate) × up of the gathered rows, to the room's `gated`.
void multiply_gate_up(const LoadedModel& model, const DeviceExperts& weights, int32_t rows) {
  const ModelConfig& config = model.config;
  const int32_t count = config.experts.count, ffn = config.experts.ffn, hidden = config.hidden;
  const ExpertRoom& room = model.room.experts;
  const Routing routing = room.routing();
  const bf16* const normed = model.room.normed.data();
  const cudaStream_t stream = model.stream.get();
  if (!by_cutlass(model))
    return multiply_grouped_gated(config.activation, {normed, routing.sources, routing.offsets, count},
                                  weights.gate_up.data(), ffn, hidden, room.gated.data(), stream);
  const int32_t gathered = rows * config.experts.per_token;
  copy_rows(normed, routing.sources, gathered, hidden, room.given.data(), stream);
  multiply_grouped_cutlass({room.given.data(), nullptr, routing.offsets, count}, weights.gate_up.data(),
                           2 * int64_t{ffn}, hidden, room.cutlass.data(), room.gate_up.data(), stream);
  apply_gates(config.activation, room.gate_up.data(), gathered, ffn, room.gated.data(), stream);
}

/// What the experts give for the gathered rows, to the room's `given`.
void multiply_down(const LoadedModel& model, const DeviceExperts& weights) {
  const ModelConfig& config = model.config;
  const ExpertRoom& room = model.room.experts;
  const GroupedRows gated{room.gated.data(), nullptr, room.offsets.data(), config.experts.count};
  const int64_t n = config.hidden, k = config.experts.ffn;
  if (by_cutlass(model))
    multiply_grouped_cutlass(gated, weights.down.data(), n, k, room.cutlass.data(), room.given.data(),
                             model.stream.get());
  else
    multiply_grouped(gated, weights.down.data(), n, k, room.given.data(), model.stream.get());
}

}  // namespace

void run_experts(LoadedModel& model, Step& step, int32_t index) {
  const ModelConfig& config = model.config;
  const Experts& experts = config.experts;
  const DeviceLayer& layer = model.weights.layers[static_cast<size_t>(index)];
  const Activations& room = model.room;
  const cudaStream_t stream = model.stream.get();
  const int32_t rows = step.rows(), hidden = config.hidden, shared = experts.shared_ffn;
  const int32_t stride = router_rows(experts);
  const Routing routing = room.experts.routing();
  float* const logits = room.experts.logits.data();

  model.products.multiply(layer.experts.router.data(), room.normed.data(), rows, stride, hidden, logits);
  route(experts, {logits, stride, layer.experts.router_bias.data()}, rows, routing, stream);
  gather_choices(experts, rows, routing, stream);
  multiply_gate_up(model, layer.experts, rows);
  if (shared > 0)
    model.products.gated(layer.gate_up.wide.data(), room.normed.data(), rows, shared, hidden,
                         room.gate_up.data(), room.mlp.data());
  step.clock.mark(Stage::mlp_up);
  multiply_down(model, layer.experts);
  if (shared > 0)
    model.products.multiply(layer.down.wide.data(), room.mlp.data(), rows, hidden, shared, room.y.data());
  const bool apart = adds_apart(config);
  const ExpertSums sums{room.experts.given.data(), shared > 0 ? room.y.data() : nullptr,
                        experts.shared_gate ? logits + experts.count : nullptr, stride};
  sum_experts(sums, routing, experts.per_token, rows, hidden, !apart, apart ? room.y.data() : room.x.data(),
              stream);
  step.clock.mark(Stage::mlp_down);
}

}  // namespace sheaf::cuda
