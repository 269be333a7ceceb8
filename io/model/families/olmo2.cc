// OLMo-2: norms after attention and MLP instead of before, and over the whole of queries and keys.
#include "io/model/families/families.h"

namespace sheaf {

constinit const Family kOlmo2Family{
    .name = "olmo2",
    .architecture = "Olmo2ForCausalLM",
    .gguf = "olmo2",
    .describe =
        [](ModelConfig& config) {
          config.qk_norm = QkNorm::whole;
          config.norms = kNormsAfter;
        },
    .read_hf =
        [](const HfFields& file, ModelConfig& config) {
          read_hf_rope(file, config);
          read_hf_window(file, config);
        },
    .read_gguf =
        [](const GgufFields& file, ModelConfig& config) {
          read_gguf_rope(file, config);
          read_gguf_window(file, config);
        },
};

}  // namespace sheaf
