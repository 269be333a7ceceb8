#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "core/task/row.h"
#include "io/base/file_layer.h"

namespace sheaf {

/// A row as a line of JSON, without its newline. Text that is not UTF-8 has replacement characters.
std::string row_line(const Row& row);

/// What one of several samples says, as `samples` of a row has it.
nlohmann::ordered_json sample_json(const RowContent& sample);

/// The row that a line tells of; nothing where row_line() did not write it.
std::optional<Row> read_row(std::string_view line);

/// The row of a request as OpenAI's batch API writes it, without its newline. Ids are made of the custom_id,
/// so a run that is repeated has the same. `created`: in seconds since 1970.
std::string openai_line(const Row& row, const std::string& model, int64_t created);

/// Writes errors.jsonl of a run folder: a line for each reject of its rejects.jsonl, as the API has it for a
/// request that failed.
void write_openai_errors(FileLayer& files, const std::string& folder);

/// Whether the rows of a run are such lines.
bool writes_openai_batch(const nlohmann::ordered_json& fingerprint);

}  // namespace sheaf
