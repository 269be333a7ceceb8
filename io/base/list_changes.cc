#include "io/base/list_changes.h"

#include <fmt/format.h>
#include <string_view>
#include <unordered_map>

#include "core/text/spelling.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;
using Members = std::unordered_map<std::string_view, const ordered_json*>;

/// An ordered object looks through all its keys for one; a corpus may have a hundred thousand.
Members members_of(const ordered_json& object) {
  Members members;
  for (const auto& [key, value] : object.items()) members.emplace(key, &value);
  return members;
}

std::string shown(const ordered_json& value) {
  return shorten_text(value.dump(-1, ' ', false, ordered_json::error_handler_t::replace), 60);
}

void add_changes(const std::string& key, const ordered_json& before, const ordered_json& now,
                 std::vector<std::string>& changes) {
  if (!before.is_object() || !now.is_object()) {
    if (before != now)
      changes.push_back(fmt::format("{} was {} and is now {}", key, shown(before), shown(now)));
    return;
  }
  const std::string prefix = key.empty() ? "" : key + ".";
  const Members old = members_of(before), fresh = members_of(now);
  for (const auto& [name, value] : before.items()) {
    const auto other = fresh.find(name);
    if (other == fresh.end())
      changes.push_back(prefix + name + " was removed");
    else
      add_changes(prefix + name, value, *other->second, changes);
  }
  for (const auto& [name, value] : now.items())
    if (!old.contains(name)) changes.push_back(prefix + name + " was added");
}

}  // namespace

std::vector<std::string> list_changes(const ordered_json& before, const ordered_json& now) {
  std::vector<std::string> changes;
  add_changes("", before, now, changes);
  return changes;
}

}  // namespace sheaf
