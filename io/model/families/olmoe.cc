// OLMoE: experts in every layer, and norms on the whole projection of queries and keys.
#include "io/model/families/experts.h"
#include "io/model/families/families.h"

namespace sheaf {

constinit const Family kOlmoeFamily{
    .name = "olmoe",
    .architecture = "OlmoeForCausalLM",
    .gguf = "olmoe",
    .hf_keys = {"num_experts", "num_local_experts"},
    .gguf_keys = {"expert_count"},
    .describe = [](ModelConfig& config) { config.qk_norm = QkNorm::whole; },
    .read_hf =
        [](const HfFields& file, ModelConfig& config) {
          read_plain_hf(file, config);
          read_hf_experts(file, config, {"num_experts", "num_local_experts"});
        },
    .read_gguf = read_expert_gguf<false>,
};

}  // namespace sheaf
