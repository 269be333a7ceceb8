#pragma once
#include <functional>
#include <span>
#include <string>

#include "core/segments/stack.h"

namespace sheaf {

/// The graph as a person reads it: every segment's text under a line with its number, its role and what it
/// sees, and a mark where an answer goes. `text_of` spells tokens, `record_name` names a record.
std::string stack_text(const Stack& stack,
                       const std::function<std::string(std::span<const TokenId>)>& text_of,
                       const std::function<std::string(int32_t record)>& record_name);

}  // namespace sheaf
