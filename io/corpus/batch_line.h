#pragma once
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/job/job.h"
#include "core/task/record.h"

namespace sheaf {

/// Reads a line of an OpenAI batch, {"custom_id", "method", "url", "body": {"messages", "max_tokens", …}}.
/// Throws BadRow, with the name of the key, for what would change the answer and is not done here. `line`:
/// the same as it is written; the keys of an answer's schema have their order from there.
void map_batch_line(const nlohmann::json& cells, std::string_view line, const Job::Method& method,
                    Record& record);

}  // namespace sheaf
