#include "core/report/rejects_text.h"

#include <algorithm>
#include <fmt/ranges.h>

#include "core/base/error.h"
#include "core/text/printable.h"
#include "core/text/spelling.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

constexpr size_t kReasonsShown = 3;
constexpr size_t kLongestReason = 300;  // bytes

std::string share_text(int64_t rejects, int64_t records) {
  return fmt::format("{} of {} ({:.0f} %)", rejects, counted(records, "record"),
                     100 * static_cast<double>(rejects) / static_cast<double>(std::max<int64_t>(1, records)));
}

}  // namespace

std::vector<std::string> common_reasons(const ordered_json& reasons) {
  std::vector<std::string> texts;
  for (const ordered_json& reason : reasons) {
    if (texts.size() == kReasonsShown) break;
    const std::string kind = reason.value("kind", ""), example = reason.value("example", ""),
                      place = reason.value("place", "");
    const auto records = reason.value("records", int64_t{0});
    std::string text = example.empty() ? kind : example;
    // What the kind leaves out differs from record to record.
    if (records > 1 && text.starts_with(kind)) text.insert(kind.size(), text == kind ? "" : ", the first");
    texts.push_back(fmt::format("{} × {}{}", records, shorten_text(text, kLongestReason),
                                place.empty() ? "" : " (" + place + ")"));
  }
  return texts;
}

std::string rejects_text(int64_t rejects, int64_t records, const ordered_json& reasons,
                         const std::string& where) {
  if (rejects == 0) return {};
  const std::vector<std::string> texts = common_reasons(reasons);
  std::string out = fmt::format("rejects {}; {}\n", share_text(rejects, records), printable_line(where));
  for (const std::string& text : texts) out += "        " + printable_line(text) + "\n";
  if (reasons.size() > texts.size())
    out += fmt::format("        {} more\n",
                       counted(static_cast<int64_t>(reasons.size() - texts.size()), "reason"));
  return out;
}

std::string rejects_warning(int64_t rejects, int64_t records) {
  if (rejects == 0 || 2 * rejects < records) return {};
  return fmt::format("{} were rejected; check that the job reads the corpus as it should",
                     share_text(rejects, records));
}

void check_not_lost(const std::string& corpus, int64_t rejects, int64_t records, const ordered_json& reasons,
                    const std::string& where) {
  if (rejects < records) return;
  if (records == 0)
    refuse("{}: the corpus has no records; check input.path, or add --allow-empty if that is right", corpus);
  refuse("{}: {} rejected: {}{}; fix the corpus or the job, or add --allow-empty", corpus,
         records == 1   ? "its only record was"
         : records == 2 ? "both records were"
                        : fmt::format("all {} records were", records),
         fmt::join(common_reasons(reasons), "; "), where.empty() ? "" : "; all are in " + where);
}

}  // namespace sheaf
