#pragma once
#include <string>
#include <string_view>

namespace sheaf {

/// The kind of a reject: its reason without what is peculiar to the row, numbers and quoted text.
std::string reason_kind(std::string_view reason);

}  // namespace sheaf
