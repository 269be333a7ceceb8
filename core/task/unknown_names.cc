#include "core/task/unknown_names.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/text/spelling.h"

namespace sheaf {
namespace {

constexpr size_t kNamed = 3, kLongestName = 60;

}  // namespace

void UnknownNames::add(const Category& category, const nlohmann::json& gold) {
  std::vector<std::string> names;
  for (const Attribute& attribute : category.attributes) names.push_back(attribute.name);
  for (const auto& [name, value] : gold.items()) {
    if (std::ranges::find(names, name) != names.end()) continue;
    ++values_;
    std::string shown = fmt::format("\"{}\" of {}", shorten_text(name, kLongestName), category.name);
    if (const std::string meant = nearest_spelling(name, names); !meant.empty())
      shown += fmt::format(" (did you mean \"{}\"?)", meant);
    if (std::ranges::find(first_, shown) != first_.end()) continue;
    if (first_.size() < kNamed)
      first_.push_back(std::move(shown));
    else
      more_ = true;
  }
}

std::string UnknownNames::notice(const std::string& path) const {
  if (values_ == 0) return {};
  return fmt::format("{}: {} left out, because the category in the schema has no such attribute: {}{}", path,
                     counted(values_, "gold value"), fmt::join(first_, ", "), more_ ? ", …" : "");
}

}  // namespace sheaf
