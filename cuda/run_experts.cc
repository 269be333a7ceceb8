#include "cuda/loaded_model.h"
#include "cuda/step.h"

namespace sheaf::cuda {
namespace {

bool by_ampere(const LoadedModel& model) {
  return model.room.experts.by == GroupedBy::ampere;
}
bool by_hopper(const LoadedModel& model) {
  return model.room.experts.by == GroupedBy::hopper;
}

/// Calls `multiply` with as many experts as are multiplied together, until all were.
template <class Multiply>
void for_experts(const LoadedModel& model, const DeviceMatrix& matrix, const Multiply& multiply) {
  const int32_t count = model.config.experts.count, at_once = model.experts_at_once(matrix);
  for (int32_t first = 0; first < count; first += at_once)
    multiply(ExpertRange{first, std::min(at_once, count - first)});
}

/// Rows as products of a range of experts read them.
template <class In>
Grouped<In> grouped(const Routes& routes, const In& in, const int32_t* sources, const ExpertRange& range) {
  return {in, sources, routes.offsets + range.first, range.count};
}

/// What becomes of gate and up of a range of experts.
Gates gates_of(const ModelConfig& config, const DeviceExperts& weights, const ExpertRange& range) {
  const float* const bias = weights.gate_up_bias.data();
  return {config.activation, bias ? bias + int64_t{2} * config.experts.ffn * range.first : nullptr};
}

/// Adds their biases to gate and up where no product does.
void add_gate_up_biases(const LoadedModel& model, const DeviceExperts& weights, const Routes& routes,
                        int32_t gathered) {
  const Experts& experts = model.config.experts;
  if (weights.gate_up_bias.size() > 0)
    add_expert_biases(weights.gate_up_bias.data(), routes.offsets, experts.count, gathered, 2 * experts.ffn,
                      model.room.experts.gate_up.data(), model.stream.get());
}

/// The products of a layer's experts in bf16.
struct Bf16Experts {
  const LoadedModel& model;
  const DeviceExperts& weights;
  Routes routes;
  const ModelConfig& config = model.config;
  const ExpertRoom& room = model.room.experts;
  cudaStream_t stream = model.stream.get();

  Gates gates(const ExpertRange& range) const { return gates_of(config, weights, range); }
  const bf16* weight(const DeviceMatrix& matrix, const ExpertRange& range) const {
    return model.bf16_weight(matrix, range, routes.offsets);
  }

  /// activation(gate) × up of the gathered rows, to the room's `gated`.
  void multiply_gate_up(int32_t gathered) const {
    const int64_t ffn = config.experts.ffn, hidden = config.hidden;
    const bf16* const normed = model.room.normed.data();
    const int32_t* const sources = routes.sources;
    if (!by_ampere(model) && !by_hopper(model))
      return for_experts(model, weights.gate_up, [&](const ExpertRange& range) {
        multiply_grouped_gated(gates(range), grouped(routes, normed, sources, range),
                               weight(weights.gate_up, range), ffn, hidden, room.gated.data(), stream);
      });
    copy_rows(normed, sources, gathered, config.hidden, room.given.data(), stream);
    const bf16* const copied = room.given.data();
    if (by_hopper(model))
      return for_experts(model, weights.gate_up, [&](const ExpertRange& range) {
        multiply_grouped_gated_hopper(gates(range), grouped(routes, copied, nullptr, range), gathered,
                                      weight(weights.gate_up, range), ffn, hidden, room.gated.data(), stream);
      });
    for_experts(model, weights.gate_up, [&](const ExpertRange& range) {
      multiply_grouped_ampere(grouped(routes, copied, nullptr, range), weight(weights.gate_up, range),
                              2 * ffn, hidden, room.cutlass.data(), room.gate_up.data(), stream);
    });
    add_gate_up_biases(model, weights, routes, gathered);
    apply_gates(config.activation, room.gate_up.data(), gathered, config.experts.ffn, room.gated.data(),
                stream);
  }

  /// What the experts give for the gathered rows, to the room's `given`.
  void multiply_down(int32_t gathered) const {
    const bf16* const gated = room.gated.data();
    for_experts(model, weights.down, [&](const ExpertRange& range) {
      const GroupedRows rows = grouped(routes, gated, nullptr, range);
      const bf16* const down = weight(weights.down, range);
      const int64_t n = config.hidden, k = config.experts.ffn;
      if (by_hopper(model))
        multiply_grouped_hopper(rows, gathered, down, n, k, room.given.data(), stream);
      else if (by_ampere(model))
        multiply_grouped_ampere(rows, down, n, k, room.cutlass.data(), room.given.data(), stream);
      else
        multiply_grouped(rows, down, n, k, room.given.data(), stream);
    });
  }
};

/// The products of a layer's experts in FP8: rows and weights in e4m3, what experts give in bf16.
struct Fp8Experts {
  const LoadedModel& model;
  const DeviceExperts& weights;
  Routes routes;
  const ModelConfig& config = model.config;
  const ExpertRoom& room = model.room.experts;
  cudaStream_t stream = model.stream.get();

  Gates gates(const ExpertRange& range) const { return gates_of(config, weights, range); }
  Fp8Weight weight(const DeviceMatrix& matrix, const ExpertRange& range) const {
    return model.fp8_weight(matrix, range, routes.offsets);
  }

  void multiply_gate_up(int32_t gathered) const {
    const int64_t ffn = config.experts.ffn, hidden = config.hidden;
    const Fp8Rows normed = model.room.normed8.rows(), gated = room.gated8.rows();
    const int32_t* const sources = routes.sources;
    const Fp8Rows copied = room.copied8();
    if (by_hopper(model)) copy_rows(normed, sources, gathered, config.hidden, copied, stream);
    for_experts(model, weights.gate_up, [&](const ExpertRange& range) {
      const Fp8Weight gate_up = weight(weights.gate_up, range);
      if (by_hopper(model))
        multiply_grouped_gated_hopper(gates(range), grouped(routes, copied, nullptr, range), gathered,
                                      gate_up, ffn, hidden, gated, stream);
      else
        multiply_grouped_gated(gates(range), grouped(routes, normed, sources, range), gate_up, ffn, hidden,
                               gated, stream);
    });
    align_rows(gated, gathered, config.experts.ffn, stream);
  }

  void multiply_down(int32_t gathered) const {
    const Fp8Rows gated = room.gated8.rows();
    for_experts(model, weights.down, [&](const ExpertRange& range) {
      const GroupedFp8Rows rows = grouped(routes, gated, nullptr, range);
      const Fp8Weight down = weight(weights.down, range);
      const int64_t n = config.hidden, k = config.experts.ffn;
      if (by_hopper(model))
        multiply_grouped_hopper(rows, gathered, down, n, k, room.given.data(), stream);
      else
        multiply_grouped(rows, down, n, k, room.given.data(), stream);
    });
  }
};

/// The MLP beside the experts, in FP8 wherever the model is: from `normed` to the room's `mlp`, and then to
/// its `y`.
void multiply_shared_gate_up(LoadedModel& model, const DeviceLayer& layer, int32_t rows) {
  const ModelConfig& config = model.config;
  const Activations& room = model.room;
  const int64_t ffn = config.experts.shared_ffn;
  if (model.fp8)
    model.products.gated(model.fp8_weight(layer.gate_up), room.normed8.rows(), rows, ffn, config.hidden,
                         nullptr, room.mlp8.rows());
  else
    model.products.gated(model.bf16_weight(layer.gate_up), room.normed.data(), rows, ffn, config.hidden,
                         room.gate_up.data(), room.mlp.data());
}
void multiply_shared_down(LoadedModel& model, const DeviceLayer& layer, int32_t rows) {
  const ModelConfig& config = model.config;
  const Activations& room = model.room;
  const int64_t ffn = config.experts.shared_ffn;
  if (model.fp8)
    model.products.multiply(model.fp8_weight(layer.down), room.mlp8.rows(), rows, config.hidden, ffn,
                            room.y.data());
  else
    model.products.multiply(model.bf16_weight(layer.down), room.mlp.data(), rows, config.hidden, ffn,
                            room.y.data());
}

template <class Numbers>
void run_layer(LoadedModel& model, Step& step, const DeviceLayer& layer, const Routes& routes) {
  const ModelConfig& config = model.config;
  const Experts& experts = config.experts;
  const Activations& room = model.room;
  const cudaStream_t stream = model.stream.get();
  const int32_t rows = step.rows(), hidden = config.hidden, stride = router_rows(experts);
  const bool shared = experts.shared_ffn > 0, apart = adds_apart(config);
  float* const logits = room.experts.logits.data();
  const Numbers products{model, layer.experts, routes};

  model.products.multiply(layer.experts.router.data(), room.normed.data(), rows, stride, hidden, logits);
  const float* const bias = layer.experts.router_bias.data();
  RouterLogits scores{logits, stride, experts.logit_bias ? nullptr : bias};
  if (experts.logit_bias) scores.logit_bias = bias;
  route(experts, scores, rows, routes, stream);
  gather_choices(experts, rows, routes, stream);
  const int32_t gathered = rows * experts.per_token;
  products.multiply_gate_up(gathered);
  if (shared) multiply_shared_gate_up(model, layer, rows);
  step.clock.mark(Stage::mlp_up);
  products.multiply_down(gathered);
  if (shared) multiply_shared_down(model, layer, rows);
  const ExpertSums sums{room.experts.given.data(), shared ? room.y.data() : nullptr,
                        experts.shared_gate ? logits + experts.count : nullptr, stride,
                        layer.experts.down_bias.data()};
  sum_experts(sums, routes, experts.per_token, rows, hidden, !apart, apart ? room.y.data() : room.x.data(),
              stream);
  step.clock.mark(Stage::mlp_down);
}

}  // namespace

void run_experts(LoadedModel& model, Step& step, int32_t index) {
  const DeviceLayer& layer = model.weights.layers[static_cast<size_t>(index)];
  const Routes routes = model.room.experts.routes(index);
  layer.experts.narrow ? run_layer<Fp8Experts>(model, step, layer, routes)
                       : run_layer<Bf16Experts>(model, step, layer, routes);
}

}  // namespace sheaf::cuda
