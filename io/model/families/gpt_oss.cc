// gpt-oss (20b and 120b): experts in every layer, biases everywhere, a clamped SwiGLU, attention sinks, and a
// window in every other layer. YaRN does not count whole pairs, which GGUF files do not say.
#include "io/model/families/families.h"

namespace sheaf {
namespace {

constexpr int32_t kGptOssPeriod = 2;  // every second layer sees all keys

void describe_gpt_oss(ModelConfig& config) {
  config.biases = {.q = true, .k = true, .v = true, .o = true};
  config.activation = Activation::clamped;
  config.sinks = true;
}

void describe_gpt_oss_experts(ModelConfig& config) {
  config.experts.normalized = true;  // a softmax over the chosen ones
  config.experts.logit_bias = true;
  config.experts.biases = true;
}

}  // namespace

constinit const Family kGptOssFamily{
    .name = "gpt_oss",
    .architecture = "GptOssForCausalLM",
    .gguf = "gpt-oss",
    .hf_keys = {"attention_bias", "num_local_experts"},
    .gguf_keys = {"expert_count"},
    .defaults =
        {.heads = 64, .kv_heads = 8, .head_dim = 64, .vocab = 201088, .context = 131072, .norm_eps = 1e-5},
    .describe = describe_gpt_oss,
    .read_hf =
        [](const HfFields& file, ModelConfig& config) {
          if (!file.boolean("attention_bias", true)) config.biases = {};
          if (const double limit = file.number("swiglu_limit", kGateClamp); limit != kGateClamp)
            refuse("{}: \"swiglu_limit\" is {}; only {} is supported", file.source(), limit, kGateClamp);
          if (!file.has("rope_scaling") && !file.has("rope_parameters"))
            refuse("{}: \"rope_scaling\" is missing", file.source());
          read_hf_rope(file, config, {.base = 150000});
          read_hf_experts(file, config, {"num_local_experts"});
          describe_gpt_oss_experts(config);
          read_hf_windows(file, config, {.window = 128, .period = kGptOssPeriod});
        },
    .read_gguf =
        [](const GgufFields& file, ModelConfig& config) {
          read_gguf_rope(file, config, false, false);
          read_gguf_experts(file, config, true);
          describe_gpt_oss_experts(config);
          read_gguf_windows(file, config, kGptOssPeriod);
        },
    .tensors = {.gguf_pre_mlp_norm = "post_attention_norm",
                .experts = {.router = "mlp.router", .in_turns = true}},
};

}  // namespace sheaf
