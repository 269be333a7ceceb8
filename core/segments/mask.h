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
bool sees(const Stack& stack, TokenPlace query, TokenPlace key);

/// The mask that the graph implies over the given tokens, [tokens × tokens] row by row.
std::vector<uint8_t> dense_mask(const Stack& stack, const std::vector<TokenPlace>& tokens);

}  // namespace sheaf
