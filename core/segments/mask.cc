#include "core/segments/mask.h"

namespace sheaf {

bool sees(const Stack& stack, TokenPlace query, TokenPlace key) {
  if (query.segment == key.segment) return key.index <= query.index;
  for (const Sight& sight : stack.segments[static_cast<size_t>(query.segment)].sees)
    if (sight.segment == key.segment) return !sight.abreast || key.index <= query.index;
  return false;
}

std::vector<uint8_t> dense_mask(const Stack& stack, const std::vector<TokenPlace>& tokens) {
  std::vector<uint8_t> mask;
  mask.reserve(tokens.size() * tokens.size());
  for (const TokenPlace& query : tokens)
    for (const TokenPlace& key : tokens) mask.push_back(sees(stack, query, key));
  return mask;
}

}  // namespace sheaf
