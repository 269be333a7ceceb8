// Qwen2 and Qwen2.5: biases on queries, keys and values. A window holds only where "use_sliding_window" says
// so.
#include "io/model/families/families.h"

namespace sheaf {

constinit const Family kQwen2Family{
    .name = "qwen2",
    .architecture = "Qwen2ForCausalLM",
    .gguf = "qwen2",
    .describe = [](ModelConfig& config) { config.biases = kQkvBiases; },
    .read_hf =
        [](const HfFields& file, ModelConfig& config) {
          read_hf_rope(file, config);
          if (file.boolean("use_sliding_window", false))
            read_hf_windows(file, config, {.first = file.integer("max_window_layers", 28)});
        },
    .read_gguf =
        [](const GgufFields& file, ModelConfig& config) {
          read_gguf_rope(file, config);
          read_gguf_windows(file, config);
        },
};

}  // namespace sheaf
