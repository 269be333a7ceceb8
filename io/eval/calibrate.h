#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/metrics/confidence.h"
#include "io/files/confidence_file.h"

namespace sheaf {

struct CalibrateSettings {
  std::string run;  ///< folder of a finished run with output.confidence and no calibration
  std::string gold, gold_format = "auto";
  std::string metric = "attributes";
  bool unmentioned_absent = false;  ///< as in JoinOptions
  double precision = 0;             ///< to be promised for what another job takes (task.trust); 0: none
  double risk = 0.05;               ///< probability that less than `precision` of what is taken is right
};

/// How far confidence was off before it was scaled, and after, on the same answers.
struct CalibrationErrors {
  double before = 0, after = 0;
};

struct CalibrateResult {
  ConfidenceScales scales;
  CalibrationErrors values;
  std::optional<CalibrationErrors> nulls;  ///< nothing: they could not be judged, and keep their confidence
  std::string why_no_nulls;
  double ran_with = 0;            ///< method.null_bias of the run
  std::vector<BiasScores> sweep;  ///< where null is an answer; empty: no value knows its margin
  int64_t judged_nulls = 0;       ///< by the gold answers, few ones included
  int64_t fixed = 0;              ///< values that do not know their margin, and stay values in the sweep
  /// Where a precision is asked for; nothing: the sample cannot promise it.
  std::optional<PromisedThreshold> trusted_values, trusted_nulls;
  std::vector<std::string> notices;  ///< of ids that stand several times and of attributes, for the user
};

/// Fits how the confidence of a run is to be scaled to what is right by gold answers, and computes what other
/// null biases would do. The same files give the same result.
CalibrateResult calibrate_confidence(const CalibrateSettings& settings);

/// For people. `file`: where the scales are written.
std::string calibrate_text(const CalibrateSettings& settings, const CalibrateResult& result,
                           const std::string& file);

}  // namespace sheaf
