// Qwen3 (dense): norms on each head of queries and keys, and heads of 128 unless the file says otherwise.
#include "io/model/families/families.h"

namespace sheaf {

constinit const Family kQwen3Family{
    .name = "qwen3",
    .architecture = "Qwen3ForCausalLM",
    .gguf = "qwen3",
    .defaults = {.head_dim = 128},
    .describe = [](ModelConfig& config) { config.qk_norm = QkNorm::per_head; },
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
