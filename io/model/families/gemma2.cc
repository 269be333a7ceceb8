// Gemma 2: soft caps on scores and logits, and a window in every other layer, the first included.
#include "io/model/families/families.h"
#include "io/model/families/gemma.h"

namespace sheaf {

constinit const Family kGemma2Family{
    .name = "gemma2",
    .architecture = "Gemma2ForCausalLM",
    .gguf = "gemma2",
    .hf_keys = {"hidden_act", "attn_logit_softcapping", "final_logit_softcapping"},
    .gguf_keys = {"attn_logit_softcapping", "final_logit_softcapping"},
    .defaults = {.head_dim = 256, .tied_output = true},
    .describe = describe_gemma,
    .read_hf =
        [](const HfFields& file, ModelConfig& config) {
          check_hf_activation(file, "gelu_pytorch_tanh");
          config.score_scale = gemma_score_scale(file);
          config.score_cap = read_hf_cap(file, "attn_logit_softcapping", 50);
          config.logit_cap = read_hf_cap(file, "final_logit_softcapping", 30);
          read_hf_rope(file, config);
          read_hf_windows(file, config, {.window = 4096, .period = 2});
        },
    .read_gguf =
        [](const GgufFields& file, ModelConfig& config) {
          config.score_scale = gemma_score_scale(config, 46);
          config.score_cap = factor(file, "attn_logit_softcapping", 50);
          config.logit_cap = factor(file, "final_logit_softcapping", 30);
          read_gguf_rope(file, config);
          read_gguf_windows(file, config, 2);
        },
    .tensors = kGemmaTensors,
};

}  // namespace sheaf
