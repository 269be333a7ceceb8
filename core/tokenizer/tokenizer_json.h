#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "core/tokenizer/splitting_tokenizer.h"

namespace sheaf {

/// Builds the tokenizer that a Hugging Face tokenizer.json describes: byte-level BPE, or BPE over characters
/// with byte fallback (Llama 2, Mistral, Phi-3). Anything it holds that would change ids and is not known is
/// refused by name. `config` is the text of the tokenizer_config.json beside it, or empty; `source` names the
/// file in errors.
std::unique_ptr<SplittingTokenizer> read_tokenizer_json(std::string_view text, std::string_view config,
                                                        const std::string& source);

}  // namespace sheaf
