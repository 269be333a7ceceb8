#include "cuda/run_layers.h"

namespace sheaf::cuda {
namespace {

/// Norm (unless it comes after), heads, attention, its output, and the norm that follows.
void run_attention(LoadedModel& model, Step& step, int32_t index) {
  const ModelConfig& config = model.config;
  const DeviceLayer& layer = model.weights.layers[static_cast<size_t>(index)];
  const Activations& room = model.room;
  const cudaStream_t stream = model.stream.get();
  const int32_t rows = step.rows(), hidden = config.hidden;
  const int64_t q_size = int64_t{config.heads} * config.head_dim;
  f16 *keys = model.keys(index), *values = model.values(index);

  if (!config.post_norm)
    rms_norm(room.x.data(), nullptr, layer.attention_norm.data(), rows, hidden, config.norm_eps,
             room.normed.data(), stream);
  step.clock.mark(Stage::norms);
  model.products.heads(layer.qkv.data(), room.normed.data(), rows, hidden,
                       {layer.qkv_bias.data(), layer.q_norm.data(), layer.k_norm.data(), room.rope.data(),
                        step.arrays.kv_slots, model.layout, room.q.data(), keys, values},
                       Scratch(room.qkv));
  if (step.arrays.attention.in_order)
    copy_keys(step.arrays.attention_on_device, model.layout, keys, values, stream);
  step.clock.mark(Stage::heads);
  attend(step.arrays.attention, step.arrays.attention_on_device, model.layout,
         {room.q.data(), keys, values, room.partial_out.data(), room.partial_lse.data(), room.mixed.data()},
         stream);
  step.clock.mark(Stage::attention);
  if (config.post_norm) {
    model.products.multiply(layer.o.data(), room.mixed.data(), rows, hidden, q_size, room.y.data());
    step.clock.mark(Stage::attention_output);
    add_rms_norm(room.y.data(), layer.attention_norm.data(), rows, hidden, config.norm_eps, room.x.data(),
                 room.normed.data(), stream);
  } else {
    model.products.add(layer.o.data(), room.mixed.data(), rows, hidden, q_size, room.x.data());
    step.clock.mark(Stage::attention_output);
    rms_norm(room.x.data(), nullptr, layer.mlp_norm.data(), rows, hidden, config.norm_eps, room.normed.data(),
             stream);
  }
  step.clock.mark(Stage::norms);
}

/// Gate, up and down, and the norm that follows where it comes after.
void run_mlp(LoadedModel& model, Step& step, const DeviceLayer& layer) {
  const ModelConfig& config = model.config;
  const Activations& room = model.room;
  const int32_t rows = step.rows(), hidden = config.hidden;

  model.products.gated(layer.gate_up.data(), room.normed.data(), rows, config.ffn, hidden,
                       Scratch(room.gate_up), room.mlp.data());
  step.clock.mark(Stage::mlp_up);
  if (config.post_norm) {
    model.products.multiply(layer.down.data(), room.mlp.data(), rows, hidden, config.ffn, room.y.data());
    step.clock.mark(Stage::mlp_down);
    add_rms_norm(room.y.data(), layer.mlp_norm.data(), rows, hidden, config.norm_eps, room.x.data(),
                 room.normed.data(), model.stream.get());
  } else {
    model.products.add(layer.down.data(), room.mlp.data(), rows, hidden, config.ffn, room.x.data());
    step.clock.mark(Stage::mlp_down);
  }
}

}  // namespace

void start_rows(LoadedModel& model, const Step& step) {
  const ModelConfig& config = model.config;
  const Activations& room = model.room;
  const cudaStream_t stream = model.stream.get();
  const int32_t rows = step.rows();
  rope_table(model.weights.rope_freqs.data(), step.arrays.positions, rows, model.layout, room.rope.data(),
             stream);
  embed(model.weights.embedding.data(), step.arrays.tokens, rows, config.hidden, room.x.data(), stream);
  if (config.post_norm)
    round_to_bf16(room.x.data(), int64_t{rows} * config.hidden, room.normed.data(), stream);
}

void run_layers(LoadedModel& model, Step& step, int32_t layers) {
  for (int32_t i = 0; i < layers; ++i) {
    run_attention(model, step, i);
    run_mlp(model, step, model.weights.layers[static_cast<size_t>(i)]);
  }
}

}  // namespace sheaf::cuda
