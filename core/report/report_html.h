#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sheaf {

/// A report as read from a run folder.
struct NamedReport {
  std::string name;  ///< of the folder
  nlohmann::ordered_json json;
};

// Pages that need nothing but themselves: style and plots are inside, no script. They are XML too. Each
// throws nlohmann's exception where a key that docs/report.md promises is missing or of another type.

std::string report_html(const nlohmann::ordered_json& report);
std::string comparison_html(const std::vector<NamedReport>& reports);

/// A whole page around `body`.
std::string html_page(const std::string& title, const std::string& body);
/// Where a run's time went: its bar, and a table of the stages.
std::string stages_html(const nlohmann::ordered_json& report);
/// How far the axes of rates go.
struct RateAxes {
  double seconds = 0, rows = 0, tokens = 0;

  void include(const nlohmann::ordered_json& report);
};
/// Rows and tokens a second over time.
std::string throughput_html(const nlohmann::ordered_json& report, const RateAxes& axes);

/// One fact about several runs.
struct ComparedFact {
  std::string name;
  std::vector<std::string> cells;  ///< one a run
  std::vector<bool>
      best;            ///< which cells are best; all false where runs cannot be ranked by it, or are equal
  bool words = false;  ///< no numbers
};

/// Of different corpora, nothing is best.
std::vector<ComparedFact> compare_reports(const std::vector<NamedReport>& reports);

/// The facts as a table for the terminal, one column a run; the best are marked by a star.
std::string comparison_text(const std::vector<NamedReport>& reports);

}  // namespace sheaf
