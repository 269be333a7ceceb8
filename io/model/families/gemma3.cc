// Gemma 3 (text): a window and a rotary table of their own in five layers of six; norms on each head.
#include "io/model/families/families.h"
#include "io/model/families/gemma.h"

namespace sheaf {
namespace {

constexpr int32_t kGemma3Period = 6;  // every sixth layer sees all keys
constexpr double kGemma3LocalBase = 10000;

}  // namespace

constinit const Family kGemma3Family{
    .name = "gemma3_text",
    .architecture = "Gemma3ForCausalLM",
    .gguf = "gemma3",
    .hf_keys = {"hidden_act", "attn_logit_softcapping", "final_logit_softcapping"},
    .gguf_keys = {"final_logit_softcapping"},
    // The text part of a model that sees says little more than its width and depth.
    .defaults = {.heads = 8,
                 .kv_heads = 4,
                 .head_dim = 256,
                 .vocab = 262208,
                 .context = 131072,
                 .norm_eps = 1e-6,
                 .tied_output = true},
    .describe =
        [](ModelConfig& config) {
          describe_gemma(config);
          config.qk_norm = QkNorm::per_head;
        },
    .read_hf =
        [](const HfFields& file, ModelConfig& config) {
          check_hf_activation(file, "gelu_pytorch_tanh");
          config.score_scale = gemma_score_scale(file);
          config.score_cap = read_hf_cap(file, "attn_logit_softcapping", 0);
          config.logit_cap = read_hf_cap(file, "final_logit_softcapping", 0);
          const char* period =
              file.has("sliding_window_pattern") ? "sliding_window_pattern" : "_sliding_window_pattern";
          const HfWindowRules rules{.window = 4096, .period = count(file, period, kGemma3Period)};
          read_hf_ropes(file, config, {.base = 1e6}, sliding_hf_layers(file, config, rules),
                        file.number("rope_local_base_freq", kGemma3LocalBase));
          read_hf_windows(file, config, rules);
        },
    .read_gguf =
        [](const GgufFields& file, ModelConfig& config) {
          config.score_scale = gemma_score_scale(config, 62);
          config.logit_cap = factor(file, "final_logit_softcapping", 0);
          read_gguf_rope(file, config);
          read_gguf_local_rope(file, config, kGemma3Period, kGemma3LocalBase);
          read_gguf_windows(file, config, kGemma3Period);
        },
    .tensors = kGemmaTensors,
};

}  // namespace sheaf
