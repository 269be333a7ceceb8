#pragma once
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace sheaf {

/// What the device works on in a step.
enum class Stage { heads, attention, attention_output, mlp_up, mlp_down, norms, pick, other };

/// As reports call them.
constexpr std::array kStageNames = {"heads", "attention", "attention_output", "mlp_up", "mlp_down", "norms",
                                    "pick",  "other"};
constexpr const char* stage_name(Stage stage) {
  return kStageNames[static_cast<size_t>(stage)];
}

/// Seconds by stage; empty where they are not measured.
using TimedStages = std::vector<std::pair<Stage, double>>;

}  // namespace sheaf
