#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace sheaf {

/// A model in a few fields: family, sizes, tensor types, context, memory.
nlohmann::ordered_json describe_model(const std::string& path);

/// A tokenizer in a few fields: kind, vocabulary, special tokens, chat template.
nlohmann::ordered_json describe_tokenizer(const std::string& path);

}  // namespace sheaf
