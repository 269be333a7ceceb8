// Qwen3-MoE (30B-A3B, 235B-A22B): Qwen3 with experts.
#include "io/model/families/experts.h"
#include "io/model/families/families.h"
#include "io/model/families/qwen.h"

namespace sheaf {

constinit const Family kQwen3MoeFamily{
    .name = "qwen3_moe",
    .architecture = "Qwen3MoeForCausalLM",
    .gguf = "qwen3moe",
    .hf_keys = {"num_experts", "num_local_experts"},
    .gguf_keys = {"expert_count"},
    .defaults = {.head_dim = 128},
    .describe = [](ModelConfig& config) { config.qk_norm = QkNorm::per_head; },
    .read_hf =
        [](const HfFields& file, ModelConfig& config) {
          read_qwen_hf(file, config);
          read_hf_experts(file, config, {"num_experts", "num_local_experts"});
        },
    .read_gguf = read_expert_gguf<true>,
};

}  // namespace sheaf
