#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace sheaf {

/// Reads one line as a JSON object, building only the values of the top-level keys that `keep` picks, so that
/// a line costs no more memory than what is wanted of it. Throws a BadText where the line is
/// no object, is not UTF-8, or is nested more than 32 levels or a million values deep.
nlohmann::json parse_json_line(std::string_view line, const std::function<bool(const std::string&)>& keep);

}  // namespace sheaf
