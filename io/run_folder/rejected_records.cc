#include "io/run_folder/rejected_records.h"

#include "core/base/error.h"
#include "core/text/json_reader.h"
#include "core/text/printable.h"
#include "io/base/file_layer.h"

namespace sheaf {
namespace {

/// The numbers of the files by the names that the fingerprint has.
std::unordered_map<std::string, size_t> numbers_then(const Manifest& manifest) {
  std::unordered_map<std::string, size_t> numbers;
  const auto corpus = manifest.fingerprint.find("corpus");
  if (corpus == manifest.fingerprint.end()) return numbers;
  for (const auto& [name, about] : corpus->items()) numbers.emplace(name, numbers.size());
  return numbers;
}

}  // namespace

RejectedRecords::RejectedRecords(const std::string& folder, const Manifest& manifest,
                                 const std::vector<std::string>& files) {
  constexpr const char* kAgain = "run the job again with --restart";
  for (const std::string& file : files) numbers_.emplace(file, numbers_.size());
  const auto then = numbers_then(manifest);
  const PublishedFile& rejects = manifest.files.back();
  const std::string path = folder + "/" + rejects.name;
  if (rejects.rows == 0 && rejects.name.ends_with(".part")) return;
  check_bytes(path, rejects);
  int64_t line = 0, records = 0;
  read_lines(path, [&](const std::string& text) {
    if (records >= rejects.rows) return;
    ++line;
    const auto reject = read_json(text);
    const auto file = reject.is_object() ? reject.value("file", nlohmann::json()) : nlohmann::json();
    const auto row = reject.is_object() ? reject.value("row", nlohmann::json()) : nlohmann::json();
    const auto number =
        file.is_string() ? then.find(printable_line(file.get_ref<const std::string&>())) : then.end();
    if (number == then.end() || !row.is_number_integer())
      refuse("{}:{}: the run's corpus has no record at the place that this line names; {}", path, line,
             kAgain);
    places_.emplace(number->second, row.get<int64_t>());
    // A line may stand for several records, which a corpus passes over together too.
    const auto several = reject.find("records");
    records += several != reject.end() && several->is_number_integer() ? several->get<int64_t>() : 1;
  });
}

bool RejectedRecords::has(const Place& place) const {
  const auto file = numbers_.find(place.file);
  return file != numbers_.end() && places_.contains({file->second, place.row});
}

}  // namespace sheaf
