// SmolLM3: Llama without rotary positions in every fourth layer.
#include "io/model/families/families.h"

namespace sheaf {
namespace {

constexpr int32_t kNoRopeInterval = 4;  // GGUF files do not say it

/// Takes the rotary table from every so many-th layer.
void leave_out_rope(ModelConfig& config, int32_t interval) {
  for (size_t i = 0; i < config.layers.size(); ++i)
    if ((i + 1) % static_cast<size_t>(interval) == 0) config.layers[i].rope = -1;
}

}  // namespace

constinit const Family kSmolLm3Family{
    .name = "smollm3",
    .architecture = "SmolLM3ForCausalLM",
    .gguf = "smollm3",
    .defaults = {.tied_output = true},
    .read_hf =
        [](const HfFields& file, ModelConfig& config) {
          read_hf_rope(file, config, {.base = 2e6});
          if (file.has("no_rope_layers")) {
            // 1 stands for a layer with positions.
            const std::vector<int64_t> rotated = read_hf_layers(file, "no_rope_layers", config);
            for (size_t i = 0; i < rotated.size(); ++i)
              if (rotated[i] == 0) config.layers[i].rope = -1;
          } else {
            leave_out_rope(config, count(file, "no_rope_layer_interval", kNoRopeInterval));
          }
          if (file.boolean("use_sliding_window", false)) read_hf_windows(file, config);
        },
    .read_gguf =
        [](const GgufFields& file, ModelConfig& config) {
          read_gguf_rope(file, config, false);
          leave_out_rope(config, kNoRopeInterval);
        },
    .tensors = {.paired_gguf = true},
};

}  // namespace sheaf
