#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace sheaf {

/// Whether the questions of a file in SQuAD's nesting (data → paragraphs → qas) are turns of dialogs, as
/// QuAC's are; nothing where it has no question.
std::optional<bool> asks_in_dialogs(const nlohmann::ordered_json& file);

/// The format that a file or folder that is not `format` has by its look; empty where it is none of them.
std::string likely_format(const std::string& format, const std::string& path);

}  // namespace sheaf
