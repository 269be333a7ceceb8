#include "io/corpus/seen_categories.h"

#include <algorithm>
#include <fmt/ranges.h>

#include "core/base/error.h"
#include "core/text/spelling.h"
#include "io/corpus/corpus.h"

namespace sheaf {
namespace {

constexpr int64_t kLooked = 100;
constexpr size_t kShownNames = 3;

std::string some_of(const std::vector<std::string>& names) {
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(names.size(), kShownNames); ++i)
    shown.push_back('"' + shorten_text(names[i], 60) + '"');
  return fmt::format(
      "{}{}", fmt::join(shown, ", "),
      names.size() > kShownNames ? fmt::format(" and {} more", names.size() - kShownNames) : "");
}

/// The job as one whose document is the category, whatever that is.
Job with_category_as_document(Job job) {
  job.input.document = {job.input.category};
  job.input.category.clear();
  job.input.id.clear();
  job.input.keep.clear();
  job.input.limit = kLooked;
  return job;
}

}  // namespace

std::string category_notice(const Job& job, const Schema& schema) {
  if (job.input.category.empty()) return {};
  std::vector<std::string> seen;
  int64_t records = 0;
  try {
    const Schema any{{{"any", {}}}};
    const auto corpus = open_corpus(with_category_as_document(job), &any);
    while (const auto row = corpus->next()) {
      const auto* record = std::get_if<Record>(&*row);
      if (record == nullptr) continue;
      if (schema.find(record->document)) return {};
      ++records;
      if (std::ranges::find(seen, record->document) == seen.end()) seen.push_back(record->document);
    }
  } catch (const Error&) {
    return {};
  }
  if (seen.empty()) return {};
  std::vector<std::string> known;
  for (const Category& category : schema.categories) known.push_back(category.name);
  return fmt::format(
      "none of the first {} records has a category of {}: column \"{}\" has {}, but the schema has {}; check "
      "input.category",
      records, job.task.schema, job.input.category, some_of(seen), some_of(known));
}

}  // namespace sheaf
