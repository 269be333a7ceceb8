#pragma once
#include <cstdint>
#include <vector>

#include "core/segments/stack.h"

namespace sheaf {

/// One token of a stack: the index-th of its segment, decoded tokens counted after the known ones.
struct TokenPlace {
  SegmentId segment;
  int32_t index;
};

/// Whether `query` attends to `key`: the whole definition of sight.
inline bool sees(const Stack& stack, TokenPlace query, TokenPlace key) {
  if (query.segment == key.segment) return key.index <= query.index;
  for (const Sight& sight : stack.segments[query.segment].sees)
    if (sight.segment == key.segment) return !sight.abreast || key.index <= query.index;
  return false;
}

/// Whether `query`, which sees `key`, weighs it by Sight::softmax.
inline bool weighs_apart(const Stack& stack, TokenPlace query, TokenPlace key) {
  for (const Sight& sight : stack.segments[query.segment].sees)
    if (sight.segment == key.segment) return !sight.softmax.plain();
  return false;
}

/// The mask that the graph implies over the given tokens, [tokens × tokens] row by row: 1, or 2 for a key
/// that is weighed apart.
inline std::vector<uint8_t> dense_mask(const Stack& stack, const std::vector<TokenPlace>& tokens) {
  std::vector<uint8_t> mask;
  mask.reserve(tokens.size() * tokens.size());
  for (const TokenPlace& query : tokens)
    for (const TokenPlace& key : tokens)
      mask.push_back(!sees(stack, query, key) ? 0 : weighs_apart(stack, query, key) ? 2 : 1);
  return mask;
}

}  // namespace sheaf
