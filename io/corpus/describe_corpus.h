#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace sheaf {

/// A corpus in a few lines: {"format", "files", "rows", "columns": [{"name", "type"}], "first": {…}} with
/// long values shortened. Refuses what is no corpus.
nlohmann::ordered_json describe_corpus(const std::string& path);

}  // namespace sheaf
