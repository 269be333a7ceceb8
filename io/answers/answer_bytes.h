#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "core/engine/answer.h"

namespace sheaf {

// An answer as bytes: one with its ending and whether it was watched, the number of its tokens, the tokens
// (numbers of 7 bits a byte), its log-probability, and where it was watched the three of its rivals (doubles,
// little-endian). A usual value takes 15 to 20 bytes.

void append_answer(const Answer& answer, std::string& bytes);

/// Reads one and takes it off the front; nothing where it does not stand there whole.
std::optional<Answer> take_answer(std::string_view& bytes);

}  // namespace sheaf
