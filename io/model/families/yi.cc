// Yi as first published: Llama under another name. Its later checkpoints and GGUF files call themselves
// llama.
#include "io/model/families/families.h"

namespace sheaf {

constinit const Family kYiFamily{
    .name = "Yi",
    .architecture = "YiForCausalLM",
    .gguf = nullptr,
};

}  // namespace sheaf
