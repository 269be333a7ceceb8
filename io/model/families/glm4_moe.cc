// GLM-4.5 (Air): experts by sigmoid scores with a bias for the choice, and an MLP that all tokens share; half
// of each head rotates. Layers that predict further tokens are left out.
#include "io/model/families/families.h"

namespace sheaf {

constinit const Family kGlm4MoeFamily{
    .name = "glm4_moe",
    .architecture = "Glm4MoeForCausalLM",
    .gguf = nullptr,
    .hf_keys = {"attention_bias", "use_qk_norm", "n_routed_experts"},
    .read_hf =
        [](const HfFields& file, ModelConfig& config) {
          if (file.boolean("attention_bias", false)) config.biases = kQkvBiases;
          if (file.boolean("use_qk_norm", false)) config.qk_norm = QkNorm::per_head;
          read_hf_rope(file, config, {.partial = true, .part = 0.5});
          read_hf_experts(file, config, {"n_routed_experts"});
          for (const char* key : {"n_group", "topk_group"})
            if (file.integer(key, 1) != 1)
              refuse("{}: \"{}\" is {}; groups of experts are not supported", file.source(), key,
                     file.integer(key));
          Experts& experts = config.experts;
          experts.scores = RouterScores::sigmoid;
          experts.choice_bias = true;
          if (!file.has("norm_topk_prob")) experts.normalized = true;
          experts.factor = factor(file, "routed_scaling_factor", 1);
          experts.shared_ffn = count(file, "n_shared_experts", 1) * experts.ffn;
        },
    .tensors = {.experts = {.shared = "mlp.shared_experts."}},
};

}  // namespace sheaf
