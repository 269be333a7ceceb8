#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "io/jobs/finished_run.h"

namespace sheaf {

struct ReviewSettings : RunPlaces {
  std::vector<std::string> attributes;  ///< to check; empty: all
  int64_t count = 100;                  ///< most values to check
  uint64_t seed = 0;
};

struct ReviewPage {
  std::string html;
  int64_t values = 0, records = 0;     ///< to check
  int64_t strata = 0;                  ///< attributes of categories that the run has values of
  bool by_sureness = false;            ///< the rows say how sure the model was
  std::vector<std::string> read = {};  ///< files that the page must not replace
};

/// Makes the page on which a person checks values of a run. The corpus is read again for the documents.
/// Refuses a run that is not finished or not of an extract job, and a corpus or schema that is not the run's.
ReviewPage make_review(const ReviewSettings& settings);

}  // namespace sheaf
