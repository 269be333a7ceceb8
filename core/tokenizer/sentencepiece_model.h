#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "core/tokenizer/splitting_tokenizer.h"

namespace sheaf {

/// What decides who encodes: a plain BPE model is encoded by CharBpe (several times as fast, the same ids),
/// any other by the sentencepiece library.
struct SentencePieceFacts {
  bool readable = false;  ///< a protocol buffer as it should be, its character map and scores sound
  bool bpe = false;
  bool plain_text = false;    ///< the normalizer changes nothing but spaces, and keeps all of those
  bool plain_pieces = false;  ///< no user-defined and no unused pieces
  bool space_in_front = false;
};
SentencePieceFacts sentencepiece_facts(std::string_view model);

/// Reads a SentencePiece .model. Control tokens such as <s> and </s> are special tokens. With `library_only`
/// the library encodes whatever the model is.
std::unique_ptr<SplittingTokenizer> read_sentencepiece(std::string_view model, const std::string& source,
                                                       bool library_only = false);

}  // namespace sheaf
