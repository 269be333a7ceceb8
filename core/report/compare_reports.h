#pragma once
#include <string>
#include <vector>

#include "core/report/report_html.h"

namespace sheaf {

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
