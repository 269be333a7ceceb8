#include <algorithm>
#include <fmt/ranges.h>

#include "core/text/spelling.h"
#include "io/base/mapped_file.h"
#include "io/files/metric_items.h"

namespace sheaf {
namespace {

/// The first few of what is shown already.
std::string list_some(const std::vector<std::string>& texts) {
  constexpr size_t kShown = 5;
  std::string list = fmt::format(
      "{}", fmt::join(texts.begin(), texts.begin() + std::min<ptrdiff_t>(std::ssize(texts), kShown), ", "));
  if (texts.size() > kShown) list += fmt::format(" and {} more", texts.size() - kShown);
  return list;
}

}  // namespace

std::string name_some(const std::string& what, const std::vector<std::string>& names) {
  std::vector<std::string> texts;
  for (const std::string& name : names) texts.push_back(shown(name));
  return fmt::format("{} {}: {}", names.size(), what, list_some(texts));
}

std::vector<std::string> join_notices(const MetricItems& joined, const std::string& path,
                                      const JoinOptions& options) {
  std::vector<std::string> notices;
  const auto add = [&](const std::string& text) { notices.push_back(fmt::format("{}: {}", path, text)); };
  const auto of = [](const std::vector<std::string>& names, const char* noun, const char* rest) {
    return plural(noun, std::ssize(names)) + rest;
  };
  if (!joined.repeated.empty())
    add(fmt::format("{} with the id of an earlier row, left out ({})", counted(joined.repeated_rows, "row"),
                    name_some(of(joined.repeated, "id", ""), joined.repeated)));
  if (!joined.paired.empty())
    add(name_some(of(joined.paired, "id", " of several rows, compared in the order of the rows"),
                  joined.paired));
  if (!joined.ambiguous.empty())
    add(name_some(of(joined.ambiguous, "id", " with several gold answers that differ, left out"),
                  joined.ambiguous));
  if (!joined.unknown_attributes.empty())
    add(fmt::format("{} of the gold that no row has, counted as null: {}",
                    counted(std::ssize(joined.unknown_attributes), "attribute"),
                    list_some(joined.unknown_attributes)));
  if (!joined.unnamed_attributes.empty())
    add(name_some(of(joined.unnamed_attributes, "attribute",
                     options.unmentioned_absent ? " of the rows that the gold never names, counted as absent"
                                                : " of the rows that the gold never names, not scored"),
                  joined.unnamed_attributes));
  if (!joined.long_lists.empty())
    add(name_some(of(joined.long_lists, "long list",
                     " of objects, whose entries were paired where equal and otherwise in batches"),
                  joined.long_lists));
  if (std::string notice = joined.unreadable.notice(path, "compared as text"); !notice.empty())
    notices.push_back(std::move(notice));
  return notices;
}

}  // namespace sheaf
