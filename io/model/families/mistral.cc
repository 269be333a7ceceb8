// Mistral and Mistral Nemo: Llama with a sliding window. Their GGUF files call themselves llama.
#include "io/model/families/families.h"

namespace sheaf {

constinit const Family kMistralFamily{
    .name = "mistral",
    .architecture = "MistralForCausalLM",
    .gguf = nullptr,
    .read_hf =
        [](const HfFields& file, ModelConfig& config) {
          read_hf_rope(file, config);
          read_hf_windows(file, config, {.window = 4096});
        },
    .read_gguf = nullptr,
    .tensors = {.paired_gguf = true},
};

}  // namespace sheaf
