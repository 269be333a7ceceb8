#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace sheaf {

/// The whole report in a report.json; refuses anything else, naming the file.
nlohmann::ordered_json read_report_file(const std::string& path);

/// What a run that is not finished saved of its report in a progress.json.
struct SavedReport {
  int64_t rows = 0, rejects = 0;  ///< in the run folder when it was saved
  nlohmann::ordered_json report;
};
/// `source` names the file in a refusal.
SavedReport read_saved_report(const std::string& text, const std::string& source);

}  // namespace sheaf
