// Granite 3 (dense).
#include "io/model/families/granite.h"

#include "io/model/families/families.h"

namespace sheaf {

constinit const Family kGraniteFamily{
    .name = "granite",
    .architecture = "GraniteForCausalLM",
    .gguf = "granite",
    .hf_keys = {"embedding_multiplier", "attention_multiplier", "residual_multiplier", "logits_scaling"},
    .gguf_keys = {"embedding_scale", "attention.scale", "residual_scale", "logit_scale"},
    .read_hf = read_granite_hf,
    .read_gguf = read_granite_gguf,
    .tensors = {.paired_gguf = true},
};

}  // namespace sheaf
