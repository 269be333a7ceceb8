// Qwen2 and Qwen2.5: biases on queries, keys and values. A window holds only where "use_sliding_window" says
// so.
#include "io/model/families/families.h"
#include "io/model/families/qwen.h"

namespace sheaf {

constinit const Family kQwen2Family{
    .name = "qwen2",
    .architecture = "Qwen2ForCausalLM",
    .gguf = "qwen2",
    .describe = [](ModelConfig& config) { config.biases = kQkvBiases; },
    .read_hf = read_qwen_hf,
};

}  // namespace sheaf
