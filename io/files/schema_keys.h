#pragma once
#include <span>
#include <string_view>

namespace sheaf {

/// A key of schema files (task.schema), for people.
struct SchemaKey {
  std::string_view name;
  std::string_view takes;
  std::string_view help;
};

/// All keys, in the order in which docs/job.md has them.
std::span<const SchemaKey> schema_keys();

}  // namespace sheaf
