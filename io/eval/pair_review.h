#pragma once
#include <string>
#include <vector>

#include "core/metrics/preference.h"
#include "io/jobs/finished_run.h"

namespace sheaf {

/// Two finished runs over the same records.
struct PairSettings : RunPlaces {
  std::string against;                  ///< the folder of the other run
  std::vector<std::string> attributes;  ///< to compare; empty: all
  int64_t count = 100;                  ///< most items to judge
  uint64_t seed = 0;                    ///< of the choice, the order and the sides
};

/// The page on which a person says which of two runs is better, without knowing which is which.
struct PairPage {
  std::string html;
  int64_t items = 0;                       ///< records, or questions, to judge
  int64_t differ = 0;                      ///< items about which the runs say different things
  int64_t equal = 0;                       ///< items about which they say the same
  int64_t unshared = 0;                    ///< items that only one of the runs has
  bool other_corpus = false;               ///< the runs read different files
  std::vector<std::string> read = {};      ///< files that the page must not replace
  std::vector<std::string> repeated = {};  ///< ids of rows left out, which an earlier row has
};

/// Chooses items about which the runs differ, at random. Refuses runs that are not finished, not of extract
/// or ask jobs, or of different tasks, and a corpus or schema that is not the run's.
PairPage make_pair_page(const PairSettings& settings);

/// What the verdicts that the page saved say of the runs: `first` is settings.run. Refuses verdicts about
/// other runs, and lines that cannot be read.
Preference count_verdicts(const PairSettings& settings, const std::string& verdicts);

}  // namespace sheaf
