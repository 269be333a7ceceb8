#pragma once
#include <string>
#include <string_view>

namespace sheaf {

/// `text` (valid UTF-8) in Unicode normalization form C: itself where it is already, otherwise a copy in
/// `storage`.
std::string_view normalize_nfc(std::string_view text, std::string& storage);

/// `text` (valid UTF-8) in form D: characters with marks taken apart, the marks in their order.
std::string normalize_nfd(std::string_view text);

}  // namespace sheaf
