#include "cuda/loaded_model.h"
#include "cuda/step.h"

namespace sheaf::cuda {
namespace {

/// What products read, in bf16.
struct Bf16 {
  static const bf16* weight(const LoadedModel& model, const DeviceMatrix& matrix) {
    return model.bf16_weight(matrix);
  }
  static bf16* normed(const Activations& room) { return room.normed.data(); }
  static bf16* mlp(const Activations& room) { return room.mlp.data(); }
  static Fp8Rows attended(const LoadedModel&) { return {}; }
  static bf16* mixed(const LoadedModel& model, int32_t) { return model.room.mixed.data(); }
};
/// The same in FP8.
struct Fp8 {
  static Fp8Weight weight(const LoadedModel& model, const DeviceMatrix& matrix) {
    return model.fp8_weight(matrix);
  }
  static Fp8Rows normed(const Activations& room) { return room.normed8.rows(); }
  static Fp8Rows mlp(const Activations& room) { return room.mlp8.rows(); }
  static Fp8Rows attended(const LoadedModel& model) {
    return model.attention_rounds ? model.room.mixed8.rows() : Fp8Rows{};
  }
  static Fp8Rows mixed(const LoadedModel& model, int32_t rows) {
    const int32_t cols = model.config.heads * model.config.head_dim;
    const Fp8Rows out = model.room.mixed8.rows();
    if (model.attention_rounds)
      align_rows(out, rows, cols, model.stream.get());
    else
      round_rows(model.room.mixed.data(), rows, cols, out, model.stream.get());
    return out;
  }
};

/// Norm (unless it comes after), heads, attention, its output, and the norm that follows.
template <class Numbers>
void run_attention(LoadedModel& model, Step& step, int32_t index) {
  const ModelConfig& config = model.config;
  const DeviceLayer& layer = model.weights.layers[static_cast<size_t>(index)];
  const Activations& room = model.room;
  const cudaStream_t stream = model.stream.get();
  const int32_t rows = step.rows(), hidden = config.hidden;
  const int64_t q_size = int64_t{config.heads} * config.head_dim;
  f16 *keys = model.keys(index), *values = model.values(index);

  if (!config.norms.post_attention)
    rms_norm(room.x.data(), nullptr, layer.attention_norm.data(), rows, hidden, config.norm_eps,
             Numbers::normed(room), stream);
  step.clock.mark(Stage::norms);
  HeadTargets targets{layer.qkv_bias.data(),
                      layer.q_norm.data(),
                      layer.k_norm.data(),
                      room.rope.data(),
                      step.arrays.kv_slots,
                      model.layout,
                      room.q.data(),
                      keys,
                      values};
  const NarrowKeys narrow = model.narrow_keys() ? model.narrow(index) : NarrowKeys{};
  if (model.attends_in_fp8) {
    targets.q8 = room.q8.data();
    targets.narrow = narrow;
  }
  const bool rounded = model.products.heads(Numbers::weight(model, layer.qkv), Numbers::normed(room), rows,
                                            hidden, targets, room.qkv.data());
  const AttentionInputs* on_device = step.arrays.attention_on_device;
  AttentionTensors tensors{room.q.data(),
                           keys,
                           values,
                           room.partial_out.data(),
                           room.partial_lse.data(),
                           room.mixed.data(),
                           Numbers::attended(model)};
  if (model.narrow_keys()) {
    if (index == 0 && narrow.bias)
      place_turns(room.rope.data(), step.arrays.kv_slots, rows, on_device, model.layout, narrow.turns,
                  stream);
    if (!rounded) round_keys(step.arrays.kv_slots, rows, model.layout, keys, narrow, stream);
    if (step.arrays.attention.in_order) copy_keys(on_device, model.layout, narrow, stream);
    if (model.attends_in_fp8) {
      if (!rounded) round_queries(room.q.data(), rows, model.layout, narrow.scales, room.q8.data(), stream);
      tensors.q8 = room.q8.data();
      tensors.narrow = narrow;
    } else {
      expand_keys(on_device, model.layout, narrow, keys, stream);
    }
  } else if (step.arrays.attention.in_order) {
    copy_keys(on_device, model.layout, keys, values, stream);
  }
  step.clock.mark(Stage::heads);
  attend(step.arrays.attention, on_device, model.layout, tensors, stream);
  const auto mixed = Numbers::mixed(model, rows);
  step.clock.mark(Stage::attention);
  const bool post = config.norms.post_attention;
  model.products.multiply(Numbers::weight(model, layer.o), mixed, rows, hidden, q_size,
                          post ? room.y.data() : room.x.data(), !post);
  step.clock.mark(Stage::attention_output);
  if (post)
    add_rms_norm(room.y.data(), layer.attention_norm.data(), rows, hidden, config.norm_eps, room.x.data(),
                 Numbers::normed(room), stream);
  else
    rms_norm(room.x.data(), nullptr, layer.mlp_norm.data(), rows, hidden, config.norm_eps,
             Numbers::normed(room), stream);
  step.clock.mark(Stage::norms);
}

/// Gate, up and down, and the norm that follows where it comes after.
template <class Numbers>
void run_mlp(LoadedModel& model, Step& step, const DeviceLayer& layer) {
  const ModelConfig& config = model.config;
  const Activations& room = model.room;
  const int32_t rows = step.rows(), hidden = config.hidden;

  model.products.gated(Numbers::weight(model, layer.gate_up), Numbers::normed(room), rows, config.ffn, hidden,
                       room.gate_up.data(), Numbers::mlp(room));
  step.clock.mark(Stage::mlp_up);
  const bool post = config.norms.post_attention;
  model.products.multiply(Numbers::weight(model, layer.down), Numbers::mlp(room), rows, hidden, config.ffn,
                          post ? room.y.data() : room.x.data(), !post);
  step.clock.mark(Stage::mlp_down);
  if (post)
    add_rms_norm(room.y.data(), layer.mlp_norm.data(), rows, hidden, config.norm_eps, room.x.data(),
                 Numbers::normed(room), model.stream.get());
}

}  // namespace

void start_rows(LoadedModel& model, const Step& step) {
  const ModelConfig& config = model.config;
  const Activations& room = model.room;
  const cudaStream_t stream = model.stream.get();
  const int32_t rows = step.rows();
  rope_table(model.weights.rope_freqs.data(), step.arrays.positions, rows, model.layout, room.rope.data(),
             stream);
  const DeviceWeights& weights = model.weights;
  if (weights.embedding.size() > 0)
    embed(weights.embedding.data(), step.arrays.tokens, rows, config.hidden, room.x.data(), stream);
  else
    embed(weights.packed_embedding.rows, step.arrays.tokens, rows, room.x.data(), stream);
  if (!config.norms.post_attention) return;
  if (model.fp8)
    round_rows(room.x.data(), rows, config.hidden, Fp8::normed(room), stream);
  else
    round_rows(room.x.data(), rows, config.hidden, Bf16::normed(room), stream);
}

void run_layers(LoadedModel& model, Step& step, int32_t layers) {
  for (int32_t i = 0; i < layers; ++i) {
    const DeviceLayer& layer = model.weights.layers[static_cast<size_t>(i)];
    if (model.fp8) {
      run_attention<Fp8>(model, step, i);
      run_mlp<Fp8>(model, step, layer);
    } else {
      run_attention<Bf16>(model, step, i);
      run_mlp<Bf16>(model, step, layer);
    }
  }
}

}  // namespace sheaf::cuda
