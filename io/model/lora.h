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
  /// Puts the deltas of tensors that hold all experts of a layer in one ("target_parameters") on the experts.
  /// `module`: what such tensors belong to, "model.layers.0.mlp.experts".
  void attach_experts(const std::string& module, std::vector<ExpertWeights>& experts);  // lora_experts.cc
  /// Refuses modules that no weight took.
  void refuse_unused() const;

 private:
  struct Module;
  void attach_stacked(const std::string& name, Module& module, std::vector<ExpertWeights>& experts) const;

  struct Module {
    std::shared_ptr<const LowRank> delta;
    int64_t rows = 0;
    int64_t cols = 0;
    int64_t ranks = 0;  ///< rows of lora_A and columns of lora_B: of all experts together, or the rank
    bool used = false;
  };
  std::string folder_;
  std::map<std::string, Module> modules_;
};

}  // namespace sheaf
