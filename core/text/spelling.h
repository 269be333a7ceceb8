#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace sheaf {

/// The candidate closest to `word` by edits (case does not count), or empty where none is close.
std::string nearest_spelling(std::string_view word, std::span<const std::string> candidates);

/// What to say after a name that is not known: `; did you mean "document"?`, else `; use one of a, b, c`.
std::string suggest_spelling(std::string_view word, std::span<const std::string> candidates);

/// With small letters in place of the capitals A to Z.
std::string lowered(std::string_view text);

/// "record", or "records" where there is not one of them.
std::string plural(std::string_view noun, int64_t count);

/// "1 record", "20 records".
std::string counted(int64_t count, std::string_view noun);

/// At most `bytes` of `text`, cut between characters, with an ellipsis where something was cut.
std::string shorten_text(std::string_view text, size_t bytes);

}  // namespace sheaf
