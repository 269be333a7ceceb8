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
  static bf16* routed(const Activations& room) { return room.normed.data(); }
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
  /// A router reads bf16, so that fewer roundings change a choice.
  static BothRows routed(const Activations& room) { return {room.normed.data(), room.normed8.rows()}; }
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

/// What a block gives, in `y`, is added to the residual stream; `next` [hidden] is the norm before the next
/// block, or nothing.
template <class Out>  // Numbers::normed() or routed()
void add_block(const LoadedModel& model, const DeviceMemory<float>& norm, const float* next, int32_t rows,
               const Out& out) {
  const ModelConfig& config = model.config;
  add_normed(model.room.y.data(), {norm.data(), next, config.residual_scale, config.norm_eps}, rows,
             config.hidden, model.room.x.data(), out, model.stream.get());
}

/// What the next block reads of the residual stream: normed by `norm` [hidden], or as it is.
template <class Out>  // Numbers::normed() or routed()
void enter_block(const LoadedModel& model, const DeviceMemory<float>& norm, int32_t rows, const Out& out) {
  const ModelConfig& config = model.config;
  const Activations& room = model.room;
  if (norm.size() > 0)
    rms_norm(room.x.data(), nullptr, norm.data(), rows, config.hidden, config.norm_eps, out,
             model.stream.get());
  else
    round_rows(room.x.data(), rows, config.hidden, out, model.stream.get());
}

/// Heads, attention, its output, and the norm that follows. What it reads is normed already where blocks are
/// added apart.
template <class Numbers>
void run_attention(LoadedModel& model, Step& step, int32_t index) {
  const ModelConfig& config = model.config;
  const DeviceLayer& layer = model.weights.layers[static_cast<size_t>(index)];
  const Activations& room = model.room;
  const cudaStream_t stream = model.stream.get();
  const int32_t rows = step.rows(), hidden = config.hidden;
  const int64_t q_size = int64_t{config.heads} * config.head_dim;
  f16 *keys = model.keys(index), *values = model.values(index);

  const bool apart = adds_apart(config);
  if (!apart) enter_block(model, layer.pre_attention_norm, rows, Numbers::normed(room));
  step.clock.mark(Stage::norms);
  HeadTargets targets{layer.qkv_bias.data(),
                      layer.q_norm.data(),
                      layer.k_norm.data(),
                      model.rope_of(index),
                      step.arrays.kv_slots,
                      model.layout,
                      room.q.data(),
                      keys,
                      values};
  const NarrowKeys narrow = model.narrow_keys() ? model.narrow(index) : NarrowKeys{};
  const bool in_fp8 = model.attends_in_fp8 && !step.weighs_documents();
  if (in_fp8) {
    targets.q8 = room.q8.data();
    targets.narrow = narrow;
  }
  const bool rounded = model.products.heads(Numbers::weight(model, layer.qkv), Numbers::normed(room), rows,
                                            hidden, targets, room.qkv.data());
  const size_t window = model.window_of(index);
  const AttentionInputs& attention = step.arrays.attention[window];
  const AttentionInputs* on_device = step.arrays.attention_on_device + window;
  AttentionTensors tensors{room.q.data(),
                           keys,
                           values,
                           room.partial_out.data(),
                           room.partial_lse.data(),
                           room.mixed.data(),
                           Numbers::attended(model)};
  tensors.sinks = layer.sinks.data();
  if (model.narrow_keys()) {
    if (index == 0 && narrow.bias)
      place_turns(model.rope_table(0), step.arrays.kv_slots, rows, on_device, model.layout, narrow.turns,
                  stream);
    if (!rounded) round_keys(step.arrays.kv_slots, rows, model.layout, keys, narrow, stream);
    if (attention.in_order) copy_keys(on_device, model.layout, narrow, stream);
    if (in_fp8) {
      if (!rounded) round_queries(room.q.data(), rows, model.layout, narrow.scales, room.q8.data(), stream);
      tensors.q8 = room.q8.data();
      tensors.narrow = narrow;
    } else {
      expand_keys(on_device, model.layout, narrow, keys, stream);
    }
  } else if (attention.in_order) {
    copy_keys(on_device, model.layout, keys, values, stream);
  }
  step.clock.mark(Stage::heads);
  const DocumentBlocks& documents = step.arrays.documents[window];
  if (documents.small_items + documents.large_items > 0)
    attend_with_documents(attention, on_device, model.layout, tensors, documents, stream);
  else
    attend(attention, on_device, model.layout, tensors, stream);
  const auto mixed = Numbers::mixed(model, rows);
  step.clock.mark(Stage::attention);
  model.products.multiply(Numbers::weight(model, layer.o), mixed, rows, hidden, q_size,
                          apart ? room.y.data() : room.x.data(), !apart);
  if (layer.o_bias.size() > 0)
    add_bias(apart ? room.y.data() : room.x.data(), layer.o_bias.data(), rows, hidden, stream);
  step.clock.mark(Stage::attention_output);
  const auto leave = [&](const auto& out) {
    if (apart)
      add_block(model, layer.post_attention_norm, layer.pre_mlp_norm.data(), rows, out);
    else
      enter_block(model, layer.pre_mlp_norm, rows, out);
  };
  if (config.layers[static_cast<size_t>(index)].experts)
    leave(Numbers::routed(room));
  else
    leave(Numbers::normed(room));
  step.clock.mark(Stage::norms);
}

/// Gate, up and down, or experts, and where blocks are added apart, the norms that follow.
template <class Numbers>
void run_mlp(LoadedModel& model, Step& step, int32_t index) {
  const ModelConfig& config = model.config;
  const std::vector<DeviceLayer>& layers = model.weights.layers;
  const DeviceLayer& layer = layers[static_cast<size_t>(index)];
  const Activations& room = model.room;
  const int32_t rows = step.rows(), hidden = config.hidden;

  const bool apart = adds_apart(config);
  if (config.layers[static_cast<size_t>(index)].experts) {
    run_experts(model, step, index);
  } else {
    model.products.gated(Numbers::weight(model, layer.gate_up), Numbers::normed(room), rows, config.ffn,
                         hidden, room.gate_up.data(), Numbers::mlp(room));
    step.clock.mark(Stage::mlp_up);
    model.products.multiply(Numbers::weight(model, layer.down), Numbers::mlp(room), rows, hidden, config.ffn,
                            apart ? room.y.data() : room.x.data(), !apart);
    step.clock.mark(Stage::mlp_down);
  }
  if (!apart) return;
  const size_t next = static_cast<size_t>(index) + 1;
  add_block(model, layer.post_mlp_norm,
            next < layers.size() ? layers[next].pre_attention_norm.data() : nullptr, rows,
            Numbers::normed(room));
}

}  // namespace

void start_rows(LoadedModel& model, const Step& step) {
  const ModelConfig& config = model.config;
  const Activations& room = model.room;
  const cudaStream_t stream = model.stream.get();
  const int32_t rows = step.rows();
  for (int32_t i = 0; i < rotary_tables(config); ++i) {
    const auto own = static_cast<size_t>(i);
    rope_table(model.weights.rope_freqs.data() + i * (config.rotary_dim / 2), step.arrays.positions, rows,
               config.rotary_dim, own < config.ropes.size() ? config.ropes[own].scale : 1.0f,
               model.rope_table(i), stream);
  }
  const DeviceWeights& weights = model.weights;
  if (weights.embedding.size() > 0)
    embed(weights.embedding.data(), step.arrays.tokens, rows, config.hidden, room.x.data(), stream);
  else
    embed(weights.packed_embedding.rows, step.arrays.tokens, rows, room.x.data(), stream);
  if (config.embedding_scale != 1)
    scale_rows(room.x.data(), int64_t{rows} * config.hidden, config.embedding_scale, 0, stream);
  if (!adds_apart(config)) return;
  const DeviceMemory<float>& norm = weights.layers.front().pre_attention_norm;
  model.fp8 ? enter_block(model, norm, rows, Fp8::normed(room))
            : enter_block(model, norm, rows, Bf16::normed(room));
}

void run_layers(LoadedModel& model, Step& step, int32_t layers) {
  for (int32_t i = 0; i < layers; ++i) {
    if (model.fp8) {
      run_attention<Fp8>(model, step, i);
      run_mlp<Fp8>(model, step, i);
    } else {
      run_attention<Bf16>(model, step, i);
      run_mlp<Bf16>(model, step, i);
    }
  }
}

}  // namespace sheaf::cuda
