#pragma once
#include <cstdint>
#include <string>

#include "core/metrics/confidence.h"
#include "core/task/row.h"

namespace sheaf {

/// What `sheaf calibrate` found for a job: how the confidence of its values and of its nulls is scaled.
struct ConfidenceScales {
  struct Part {
    ConfidenceScale scale;
    int64_t items = 0, right = 0;  ///< what it was fitted on; 0: it is the plain confidence
  };
  Part values, nulls;
  std::string metric;  ///< the metric that judged answers
};

/// The text of a confidence file.
std::string confidence_file_text(const ConfidenceScales& scales);
/// Refuses a file that `sheaf calibrate` did not write, with the place and what to do.
ConfidenceScales read_confidence_file(const std::string& path);

/// Scales the confidence of all values, answers and nulls of a row.
void scale_confidence(const ConfidenceScales& scales, Row& row);

}  // namespace sheaf
