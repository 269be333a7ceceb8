// Mixtral: Mistral with experts. Its GGUF files say that they are Llama's.
#include "io/model/families/mixtral.h"

#include "io/model/families/families.h"

namespace sheaf {

constinit const Family kMixtralFamily{
    .name = "mixtral",
    .architecture = "MixtralForCausalLM",
    .gguf = nullptr,
    .hf_keys = {"num_local_experts"},
    .read_hf =
        [](const HfFields& file, ModelConfig& config) {
          read_hf_rope(file, config, {.base = 1e6});
          read_hf_windows(file, config);
          read_hf_experts(file, config, {"num_local_experts"});
          config.experts.normalized = true;
        },
    .tensors = {.experts = kMixtralExperts},
};

}  // namespace sheaf
