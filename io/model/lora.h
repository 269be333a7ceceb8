#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "core/model/model.h"

namespace sheaf {

/// A LoRA adapter in PEFT format: a folder with adapter_config.json and adapter_model.safetensors.
class Adapter {
 public:
  /// Refuses, by name, what would not be W + scale * B A: DoRA, biases, whole modules saved, ...
  static Adapter open(const std::string& folder);

  /// Puts the delta of a module ("model.layers.0.self_attn.q_proj") on its weight, if the adapter has one;
  /// refuses one that does not fit.
  void attach(const std::string& module, Matrix& weight);
  /// Refuses modules that no weight took.
  void refuse_unused() const;

 private:
  struct Module {
    std::shared_ptr<const LowRank> delta;
    int64_t rows = 0;
    int64_t cols = 0;
    bool used = false;
  };
  std::string folder_;
  std::map<std::string, Module> modules_;
};

}  // namespace sheaf
