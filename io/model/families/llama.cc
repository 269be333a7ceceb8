// Llama 2 and 3.x, SmolLM2. The plainest family; the others are described by how they differ from it. Its
// GGUF files may also hold a Mixtral.
#include "io/model/families/families.h"
#include "io/model/families/mixtral.h"

namespace sheaf {

constinit const Family kLlamaFamily{
    .name = "llama",
    .architecture = "LlamaForCausalLM",
    .gguf = "llama",
    .gguf_keys = {"expert_count"},
    .read_gguf =
        [](const GgufFields& file, ModelConfig& config) {
          read_gguf_rope(file, config, false);
          read_gguf_windows(file, config);
          read_gguf_experts(file, config, true);
        },
    .tensors = {.paired_gguf = true, .experts = kMixtralExperts},
};

}  // namespace sheaf
