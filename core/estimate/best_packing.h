#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "core/estimate/estimate.h"

namespace sheaf {

/// What of a case decides how its work is cut.
struct Packing {
  int32_t documents = 0, prompt_tokens = 0, tokens_per_step = 0;
  bool operator==(const Packing&) const = default;
};

/// Settings with which the work is done soonest.
struct BestPacking {
  Packing packing;
  double work_seconds = 0;
  int32_t tried = 0;  ///< settings that were compared
};

/// Looks through a grid of documents a prompt, tokens a prompt and rows a step, as far as memory goes. What
/// was asked stays where nothing is better by half a percent. Fewer are tried, on fewer rows, where answers
/// are long. `as_asked`: seconds of work with what was asked.
BestPacking find_best_packing(const EstimateCase& asked, const SampledRecords& rows, double as_asked);

/// The GPUs of the list that hold the model, for a message about one that does not.
std::string fitting_devices(EstimateCase asked, const HardwareList& list);

/// The line about it: what to change and what that saves.
std::string best_text(const EstimateCase& asked, const Estimate& each, const BestPacking& best);
nlohmann::ordered_json best_json(const BestPacking& best);

}  // namespace sheaf
