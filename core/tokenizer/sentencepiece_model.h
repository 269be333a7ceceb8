#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "core/tokenizer/splitting_tokenizer.h"

namespace sheaf {

/// Reads a SentencePiece .model; the sentencepiece library does the encoding. Control tokens such as <s> and </s> are
/// special tokens.
std::unique_ptr<SplittingTokenizer> read_sentencepiece(std::string_view model, const std::string& source);

/// What decides whether text may be cut at spaces before it is encoded (and its words remembered).
struct SentencePieceFacts {
  bool bpe = false;
  bool plain_text = false;    ///< the normalizer changes nothing but spaces
  bool space_in_front = false;
  bool keeps_spaces = false;  ///< runs of spaces stay as they are
  bool readable = false;      ///< the model could be read as the protocol buffer it should be
};
SentencePieceFacts sentencepiece_facts(std::string_view model);

}  // namespace sheaf
