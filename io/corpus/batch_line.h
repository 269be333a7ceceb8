#pragma once
#include <nlohmann/json.hpp>

#include "core/job/job.h"
#include "core/task/record.h"

namespace sheaf {

/// Reads a line of an OpenAI batch, {"custom_id", "method", "url", "body": {"messages", "max_tokens", …}}.
/// Throws BadRow, with the name of the key, for what would change the answer and is not done here.
void map_batch_line(const nlohmann::json& cells, const Job::Method& method, Record& record);

}  // namespace sheaf
