// Qwen2-MoE and Qwen1.5-MoE: Qwen2 with experts, and an MLP that all tokens share, behind a gate.
#include "io/model/families/experts.h"
#include "io/model/families/families.h"
#include "io/model/families/qwen.h"

namespace sheaf {

constinit const Family kQwen2MoeFamily{
    .name = "qwen2_moe",
    .architecture = "Qwen2MoeForCausalLM",
    .gguf = "qwen2moe",
    .hf_keys = {"num_experts", "num_local_experts"},
    .gguf_keys = {"expert_count"},
    .describe = [](ModelConfig& config) { config.biases = kQkvBiases; },
    .read_hf =
        [](const HfFields& file, ModelConfig& config) {
          if (!file.boolean("qkv_bias", true)) config.biases = {};
          read_qwen_hf(file, config);
          read_hf_experts(file, config, {"num_experts", "num_local_experts"});
          config.experts.shared_ffn = count(file, "shared_expert_intermediate_size");
          config.experts.shared_gate = true;
        },
    .read_gguf = read_expert_gguf<false>,
};

}  // namespace sheaf
