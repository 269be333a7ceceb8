#pragma once
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace sheaf {

/// Why a row is refused; thrown by what reads its cells, caught by RecordMapper.
struct BadRow {
  std::string reason;
};

template <class... Args>
[[noreturn]] void reject(fmt::format_string<Args...> format, Args&&... args) {
  throw BadRow{fmt::format(format, std::forward<Args>(args)...)};
}

constexpr size_t kLongestDocument = 10 << 20;

/// "a number", "a list", …
std::string_view kind_of(const nlohmann::json& value);
/// The cell of a column; a missing one is rejected.
const nlohmann::json& cell(const nlohmann::json& cells, std::string_view column);
/// A column that must hold a list of 1 to `most` `things`: "questions".
const nlohmann::json& list_cell(const nlohmann::json& cells, std::string_view column, std::string_view things,
                                size_t most);
/// Text, or a number as text; anything else, and text that is too long or not UTF-8, is rejected. `what`
/// begins the reason.
std::string text_of(const nlohmann::json& value, std::string_view what);
/// Text or a number as it stands.
nlohmann::json id_of(const nlohmann::json& value, std::string_view what);
bool blank(const std::string& text);

}  // namespace sheaf
