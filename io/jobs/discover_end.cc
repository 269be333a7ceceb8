#include <algorithm>
#include <fmt/ranges.h>

#include "core/text/spelling.h"
#include "io/jobs/discover_job.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

constexpr size_t kShownNames = 5;

std::string replies_text(int64_t count) {
  return count == 1 ? "1 reply" : fmt::format("{} replies", count);
}

std::string some_of(const std::vector<std::string>& names) {
  std::vector<std::string> some;
  for (size_t i = 0; i < std::min(names.size(), kShownNames); ++i)
    some.push_back('"' + shorten_text(names[i], 60) + '"');
  return fmt::format(
      "{}{}", fmt::join(some, ", "),
      names.size() > kShownNames ? fmt::format(" and {} more", names.size() - kShownNames) : "");
}

}  // namespace

std::vector<std::string> DiscoverEnd::troubles() const {
  std::vector<std::string> all;
  if (!unread.empty())
    all.push_back(fmt::format("{} without a readable attribute: {}; the replies are in {}/run",
                              replies_text(std::ssize(unread)), some_of(unread), work));
  if (!rejected.empty())
    all.push_back(fmt::format("{} rejected: {}; {}/run/rejects.jsonl says why",
                              counted(std::ssize(rejected), "prompt"), some_of(rejected), work));
  if (rejects > 0)
    all.push_back(fmt::format("{} of the corpus cannot be read; the first: {}", counted(rejects, "record"),
                              first_reject));
  if (without_category > 0)
    all.push_back(fmt::format("{} of the corpus left out: the category is blank or longer than 200 bytes",
                              counted(without_category, "record")));
  return all;
}

ordered_json DiscoverEnd::json() const {
  ordered_json lists = ordered_json::array();
  for (const DiscoveredCategory& each : categories)
    lists.push_back({{"category", each.name},
                     {"records", each.records},
                     {"shown", each.shown},
                     {"prompts", each.prompts},
                     {"read", each.read},
                     {"attributes", each.attributes.size()},
                     {"left_out", each.left_out}});
  return {{"categories", lists},
          {"unread", unread},
          {"rejected", rejected},
          {"rejects", rejects},
          {"without_category", without_category},
          {"further_categories", further_categories},
          {"work", work}};
}

}  // namespace sheaf
