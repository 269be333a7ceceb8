// OLMo-2: norms after attention and MLP instead of before, and over the whole of queries and keys. GGUF files
// of OLMo 3 say olmo2 too: those with a window.
#include "io/model/families/families.h"
#include "io/model/families/olmo.h"

namespace sheaf {

constinit const Family kOlmo2Family{
    .name = "olmo2",
    .architecture = "Olmo2ForCausalLM",
    .gguf = "olmo2",
    .describe = describe_olmo,
    .read_gguf =
        [](const GgufFields& file, ModelConfig& config) {
          constexpr uint64_t kOlmo3Period = 4;
          read_gguf_rope(file, config);
          if (!file.has("attention.sliding_window")) return;
          config.family = "olmo3";
          // Here the file's factor on cosines and sines is the whole one.
          config.ropes[0].scale = factor(file, "rope.scaling.attn_factor", config.ropes[0].scale);
          read_gguf_local_rope(file, config, kOlmo3Period, positive(file, "rope.freq_base", 10000));
          read_gguf_windows(file, config, kOlmo3Period);
        },
};

}  // namespace sheaf
