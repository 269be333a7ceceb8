// OLMo 3: OLMo-2 with a window in three layers of four, which also have no scaled positions. Its GGUF files
// call themselves olmo2.
#include "io/model/families/families.h"
#include "io/model/families/olmo.h"

namespace sheaf {

constinit const Family kOlmo3Family{
    .name = "olmo3",
    .architecture = "Olmo3ForCausalLM",
    .gguf = nullptr,
    .describe = describe_olmo,
    .read_hf =
        [](const HfFields& file, ModelConfig& config) {
          constexpr double kBase = 500000;
          const HfWindowRules rules{.window = 4096, .period = 4};
          read_hf_ropes(file, config, {.base = kBase}, sliding_hf_layers(file, config, rules),
                        file.number("rope_theta", kBase));
          read_hf_windows(file, config, rules);
        },
    .read_gguf = nullptr,
};

}  // namespace sheaf
