#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/task/schema.h"

namespace sheaf {

/// The properties of a JSON Schema that describes a flat object, as attributes in the order in which they are
/// written; what Pydantic's model_json_schema() prints is one. Reads `properties`, `type`, `enum`, `const`,
/// `description`, `items` of texts, `pattern`, `format: date`, null beside one type (in `type`, `anyOf` or
/// `oneOf`), and `$ref` to `$defs` of the same schema. Refuses anything else that would change the answer,
/// naming its path, which begins with `path`.
std::vector<Attribute> read_json_schema(const nlohmann::ordered_json& schema, const std::string& path);

}  // namespace sheaf
