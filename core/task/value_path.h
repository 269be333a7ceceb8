#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/task/row.h"
#include "core/task/schema.h"

namespace sheaf {

/// A key on the way to a value, and in a list of objects the entry, counted from 0.
struct PathStep {
  std::string name;
  std::optional<int32_t> entry = {};

  bool operator==(const PathStep&) const = default;
};

/// Where a value stands inside of a row: variants[2].price
using ValuePath = std::vector<PathStep>;

/// A path as it is spelled. One key alone is itself; in a longer path a key that is empty or holds one of
/// . [ ] " is a JSON text: "No. of legs"[0].name
std::string path_text(const ValuePath& path);

/// Reads what path_text() wrote; nothing where the text is no path. A key that stands alone is found as
/// itself first, so a name with a dot is no path where an attribute is called so.
std::optional<ValuePath> read_path(std::string_view text);

/// The attribute that a path leads to, entries passed over; null where there is none.
const Attribute* find_attribute(const std::vector<Attribute>& attributes, std::string_view path);

/// Calls visit(path, answer) with each value of a row, an object or a list of objects before what is in it.
/// `Values`: const or not.
template <class Values, class Visit>
void visit_values(Values& values, const Visit& visit, const ValuePath& above = {}) {
  for (auto& each : values) {
    ValuePath path = above;
    path.push_back({each.name});
    visit(path_text(path), each.answer);
    auto& value = each.answer.value;
    if (auto* object = std::get_if<RowObject>(&value)) visit_values(object->values, visit, path);
    if (auto* list = std::get_if<std::vector<RowObject>>(&value))
      for (size_t i = 0; i < list->size(); ++i) {
        path.back().entry = static_cast<int32_t>(i);
        visit_values((*list)[i].values, visit, path);
      }
  }
}

}  // namespace sheaf
