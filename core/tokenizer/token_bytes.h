#pragma once
#include <cstddef>
#include <string>

#include "core/tokenizer/tokenizer.h"

namespace sheaf {

/// What each token adds to a text.
class TokenBytes {
 public:
  explicit TokenBytes(const Tokenizer& tokenizer);

  std::string of(TokenId token) const;

 private:
  const Tokenizer& tokenizer_;
  // Some tokenizers leave out the space that a text begins with, so another token stands before.
  Tokens before_;
  size_t before_bytes_ = 0;
};

}  // namespace sheaf
