// Qwen3 (dense): norms on each head of queries and keys, and heads of 128 unless the file says otherwise.
#include "io/model/families/families.h"
#include "io/model/families/qwen.h"

namespace sheaf {

constinit const Family kQwen3Family{
    .name = "qwen3",
    .architecture = "Qwen3ForCausalLM",
    .gguf = "qwen3",
    .defaults = {.head_dim = 128},
    .describe = [](ModelConfig& config) { config.qk_norm = QkNorm::per_head; },
    .read_hf = read_qwen_hf,
};

}  // namespace sheaf
