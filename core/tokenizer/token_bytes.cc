#include "core/tokenizer/token_bytes.h"

namespace sheaf {

TokenBytes::TokenBytes(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {
  for (TokenId id = 0; id < tokenizer.vocab_size() && before_bytes_ == 0; ++id) {
    if (tokenizer.is_special(id)) continue;
    before_ = {id};
    before_bytes_ = tokenizer.decode(before_).size();
  }
}

std::string TokenBytes::of(TokenId token) const {
  Tokens both = before_;
  both.push_back(token);
  return tokenizer_.decode(both).substr(before_bytes_);
}

}  // namespace sheaf
