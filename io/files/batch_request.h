#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "core/task/schema.h"
#include "core/tokenizer/chat_template.h"

namespace sheaf {

/// A line of an OpenAI batch file, with its newline. `body`: further keys of the request, such as "model".
std::string batch_request(const std::string& id, const Dialog& dialog,
                          const nlohmann::ordered_json& body = nlohmann::ordered_json::object());

/// What a judge is asked about the values that were extracted from a document (llm-f1). `values`: attribute
/// to value, as rows have them.
Dialog judge_dialog(const Category& category, const std::string& document, const nlohmann::json& values);

}  // namespace sheaf
