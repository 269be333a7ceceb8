// Llama 2 and 3.x, SmolLM2. The plainest family; the others are described by how they differ from it.
#include "io/model/families/families.h"

namespace sheaf {

constinit const Family kLlamaFamily{
    .name = "llama",
    .architecture = "LlamaForCausalLM",
    .gguf = "llama",
    .read_gguf =
        [](const GgufFields& file, ModelConfig& config) {
          read_gguf_rope(file, config, false);
          read_gguf_windows(file, config);
        },
    .tensors = {.paired_gguf = true},
};

}  // namespace sheaf
