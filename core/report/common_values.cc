#include "core/report/common_values.h"

#include <algorithm>

#include "core/text/spelling.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

constexpr size_t kKeptValues = 32, kValuesShown = 5;
constexpr size_t kLongestCounted = 100;  // bytes of a value

void keep_shown(ordered_json& list) {
  std::stable_sort(list.begin(), list.end(),
                   [](const auto& a, const auto& b) { return a.at("rows") > b.at("rows"); });
  if (list.size() > kValuesShown) list.erase(list.begin() + kValuesShown, list.end());
}

}  // namespace

void CommonValues::add(std::string_view value) {
  const std::string shown = shorten_text(value, kLongestCounted);
  const auto found = std::ranges::find(entries_, shown, &Entry::value);
  if (found != entries_.end()) {
    ++found->count;
  } else if (entries_.size() < kKeptValues) {
    entries_.push_back({shown, 1, 0});
  } else {
    Entry& least = *std::ranges::min_element(entries_, {}, &Entry::count);
    least = {shown, least.count + 1, least.count};
  }
}

ordered_json CommonValues::json() const {
  ordered_json list = ordered_json::array();
  for (const Entry& entry : entries_)
    list.push_back({{"value", valid_utf8(entry.value)}, {"rows", entry.count - entry.extra}});
  keep_shown(list);
  return list;
}

void add_common_values(const ordered_json& from, ordered_json& to) {
  for (const ordered_json& value : from) {
    const auto known = std::find_if(to.begin(), to.end(), [&](const ordered_json& each) {
      return each.at("value") == value.at("value");
    });
    if (known == to.end())
      to.push_back(value);
    else
      (*known)["rows"] = known->at("rows").get<int64_t>() + value.at("rows").get<int64_t>();
  }
  keep_shown(to);
}

}  // namespace sheaf
