#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "core/tokenizer/splitting_tokenizer.h"

namespace sheaf {

/// Reads a tiktoken rank file: one "base64 rank" a line. 128000 ranks are Llama 3's (with its 256 special
/// tokens); 100256 are cl100k's, 199998 o200k's, with theirs; any other count is taken for cl100k's pattern
/// without special tokens.
std::unique_ptr<SplittingTokenizer> read_tiktoken(std::string_view text, const std::string& source);

/// Whether the first line of a file reads like one of a rank file.
bool looks_like_tiktoken(std::string_view text);

}  // namespace sheaf
