#pragma once
#include <string>
#include <vector>

#include "core/tokenizer/chat_template.h"

namespace sheaf {

/// The turns of a dialog (the user's, the model's, …) as templates show them that drop earlier thoughts.
std::vector<std::string> without_thoughts(std::vector<std::string> turns, EarlierThoughts thoughts);

}  // namespace sheaf
