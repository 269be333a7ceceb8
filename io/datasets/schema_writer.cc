#include "io/datasets/schema_writer.h"

#include <algorithm>
#include <fmt/format.h>

namespace sheaf {
namespace {

using nlohmann::ordered_json;

constexpr size_t kShownValues = 3;

/// JSON's quotes are YAML's too.
std::string yaml_text(const std::string& text) {
  return ordered_json(text).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace

void SchemaWriter::add(const ordered_json& row) {
  Category& category = categories_[row["category"].get<std::string>()];
  ++category.rows;
  for (const auto& [name, values] : row["gold"].items()) {
    auto found = std::find_if(category.attributes.begin(), category.attributes.end(),
                              [&key = name](const Attribute& a) { return a.name == key; });
    if (found == category.attributes.end())
      found = category.attributes.insert(category.attributes.end(), {name, 0, {}});
    bool any = false;
    for (const ordered_json& value : values) {
      const auto text = value.get<std::string>();
      if (text == "n/a") continue;
      any = true;
      ++found->values[text];
    }
    if (any) ++found->found;
  }
}

std::string SchemaWriter::text(const std::string& source) const {
  std::string out = fmt::format("# The categories and attributes that occur in {}.\n\ncategories:\n", source);
  for (const auto& [name, category] : categories_) {
    out += fmt::format("  {}:  # {} rows\n", yaml_text(name), category.rows);
    if (category.attributes.empty()) out += "    []\n";
    for (const Attribute& attribute : category.attributes) {
      std::vector<std::pair<std::string, int64_t>> values(attribute.values.begin(), attribute.values.end());
      std::stable_sort(values.begin(), values.end(),
                       [](const auto& a, const auto& b) { return a.second > b.second; });
      std::string shown;
      for (size_t i = 0; i < std::min(values.size(), kShownValues); ++i)
        shown += (i == 0 ? "for example " : ", ") + values[i].first;
      out += fmt::format("    - {{name: {}, description: {}}}  # in {} of them\n", yaml_text(attribute.name),
                         yaml_text(shown), attribute.found);
    }
  }
  return out;
}

}  // namespace sheaf
