#include "io/files/attribute_names.h"

#include <fmt/format.h>

#include "core/text/spelling.h"
#include "io/base/mapped_file.h"
#include "io/files/nested_items.h"

namespace sheaf {
namespace {

using nlohmann::json;

void add_names(const std::string& parent, const json& value, std::map<std::string, std::string>& names,
               std::set<std::string>& objects) {
  if (value.is_array())
    for (const json& entry : value)
      if (entry.is_object()) add_names(parent, entry, names, objects);
  if (!value.is_object()) return;
  objects.insert(parent);
  for (const auto& [key, part] : value.items()) {
    const std::string name = parent.empty() ? key : parent + "." + path_key(key);
    names.emplace(name, parent);
    add_names(name, part, names, objects);
  }
}

}  // namespace

void AttributeNames::add(const json& extra, const json& row) {
  for (const char* key : {"gold", "wrong"})
    if (const auto named = extra.find(key); named != extra.end()) add_names("", *named, gold_, gold_objects_);
  add_names("", row, rows_, row_objects_);
}

void AttributeNames::compare(const std::set<std::string>& all, MetricItems& joined) const {
  std::set<std::string> known = all;
  for (const auto& [name, parent] : rows_) {
    known.insert(name);
    if (!gold_.contains(name) && gold_objects_.contains(parent)) joined.unnamed_attributes.push_back(name);
  }
  const std::vector<std::string> others(known.begin(), known.end());
  for (const auto& [name, parent] : gold_) {
    if (known.contains(name) || !row_objects_.contains(parent)) continue;
    // An attribute that the gold does not name is the likelier meaning.
    std::string meant = nearest_spelling(name, joined.unnamed_attributes);
    if (meant.empty()) meant = nearest_spelling(name, others);
    joined.unknown_attributes.push_back(
        shown(name) + (meant.empty() ? "" : fmt::format(" (did you mean {}?)", shown(meant))));
  }
}

}  // namespace sheaf
