#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace sheaf {

/// A model, tokenizer or corpus as `sheaf inspect` prints it: {"path", "model", "tokenizer"} with what the
/// path has of the two, or {"path", "corpus"} with a proposed job. Refuses anything else.
nlohmann::ordered_json describe_path(const std::string& path);

}  // namespace sheaf
