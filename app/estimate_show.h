#pragma once
#include <string>
#include <vector>

#include "core/estimate/estimate.h"
#include "io/estimate/inputs.h"
#include "io/files/estimate_section.h"
#include "io/files/hardware_file.h"

namespace sheaf {

struct ShowOptions {
  bool json = false;
  std::string html;    ///< a page to write too; empty: none
  double within = 0;   ///< seconds that it may take; 0: any
  int32_t shards = 0;  ///< of an array of them; 0: not asked for
};

/// One device in detail, with the best setting on it. Refuses a model that it cannot hold.
void show_estimate(const ShowOptions& options, const EstimateCase& asked, const EstimateInputs& inputs,
                   const HardwareList& list);

/// A comparison.
void show_sweep(const ShowOptions& options, const EstimateCase& base, const EstimateInputs& inputs,
                const HardwareList& list, const std::vector<SweepAxis>& axes);

}  // namespace sheaf
