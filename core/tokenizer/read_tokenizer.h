#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "core/tokenizer/splitting_tokenizer.h"

// Tokenizers from the bytes of their files; `source` names the file in errors.

namespace sheaf {

/// Builds the tokenizer that a Hugging Face tokenizer.json describes: byte-level BPE, or BPE over characters
/// with byte fallback (Llama 2, Mistral, Phi-3). Anything it holds that would change ids and is not known is
/// refused by name. `config` is the text of the tokenizer_config.json beside it, or empty.
std::unique_ptr<SplittingTokenizer> read_tokenizer_json(std::string_view text, std::string_view config,
                                                        const std::string& source);

/// Reads a tiktoken rank file: one "base64 rank" a line. 128000 ranks are Llama 3's (with its 256 special
/// tokens); 100256 are cl100k's, 199998 o200k's, with theirs; any other count is taken for cl100k's pattern
/// without special tokens.
std::unique_ptr<SplittingTokenizer> read_tiktoken(std::string_view text, const std::string& source);

/// Whether the first line of a file reads like one of a rank file.
bool looks_like_tiktoken(std::string_view text);

/// Whether the bytes are a SentencePiece model whose character map and scores are sound.
bool looks_like_sentencepiece(std::string_view model);

/// Reads a SentencePiece .model. Control tokens such as <s> and </s> are special tokens. With `library_only`
/// the library encodes whatever the model is.
std::unique_ptr<SplittingTokenizer> read_sentencepiece(std::string_view model, const std::string& source,
                                                       bool library_only = false);

}  // namespace sheaf
