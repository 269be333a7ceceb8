#pragma once
#include <nlohmann/json.hpp>

#include "core/job/job.h"
#include "core/task/record.h"

namespace sheaf {

/// Reads the documents of a row and how relevant each is for its questions, which are there already. Where
/// the row has no scores they are lexical. Rejects what cannot be used (BadRow).
void map_documents(const nlohmann::json& cells, const Job::Input& input, Record& record);

}  // namespace sheaf
