// Granite 3 MoE: Granite's factors, and experts whose matrices lie in one tensor.
#include "io/model/families/families.h"
#include "io/model/families/granite.h"

namespace sheaf {

constinit const Family kGraniteMoeFamily{
    .name = "granitemoe",
    .architecture = "GraniteMoeForCausalLM",
    .gguf = "granitemoe",
    .hf_keys = {"embedding_multiplier", "attention_multiplier", "residual_multiplier", "logits_scaling",
                "num_local_experts"},
    .gguf_keys = {"embedding_scale", "attention.scale", "residual_scale", "logit_scale", "expert_count"},
    .read_hf =
        [](const HfFields& file, ModelConfig& config) {
          read_granite_hf(file, config);
          read_hf_experts(file, config, {"num_local_experts"});
          config.experts.normalized = true;  // a softmax over the chosen ones
        },
    .read_gguf =
        [](const GgufFields& file, ModelConfig& config) {
          read_granite_gguf(file, config);
          read_gguf_experts(file, config, true);
        },
    .tensors = {.paired_gguf = true,
                .experts = {.router = "block_sparse_moe.router.layer",
                            .gate_up = "block_sparse_moe.input_linear",
                            .all_down = "block_sparse_moe.output_linear"}},
};

}  // namespace sheaf
