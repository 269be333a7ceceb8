#pragma once
#include <memory>

#include "core/tokenizer/splitting_tokenizer.h"
#include "io/model/gguf.h"

namespace sheaf {

/// Builds the tokenizer inside a GGUF file: kinds `gpt2` (byte-level BPE, by its `pre` type) and `llama`
/// (SentencePiece BPE). Refuses other kinds, naming them.
std::unique_ptr<SplittingTokenizer> read_gguf_tokenizer(const GgufFile& file);

}  // namespace sheaf
