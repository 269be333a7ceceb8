#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/metrics/confidence.h"
#include "core/metrics/metric.h"

namespace sheaf {

/// Everything `sheaf score` has to say.
struct ScoreReport {
  Scores scores;
  ScoreOptions options;
  std::vector<Group> groups;
  std::vector<Group> types;  ///< attributes: by type of value, where the schema is known
  int64_t missing = 0, unknown = 0;
  int64_t repeated = 0;   ///< rows left out, whose id an earlier row has
  int64_t ambiguous = 0;  ///< ids left out, whose gold answers differ
  struct Against {
    std::string path;
    Scores scores;
    Comparison comparison;  ///< the scored run less this one
  };
  std::optional<Against> against;
  JudgedItems judged;  ///< where the run has a confidence
};

/// Values under the names that the official script gives them, and what we add.
nlohmann::ordered_json score_json(const ScoreReport& report);
/// A table for people.
std::string score_text(const ScoreReport& report);

}  // namespace sheaf
