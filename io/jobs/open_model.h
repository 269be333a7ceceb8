#pragma once
#include <mutex>

#include "core/engine/stop_rules.h"
#include "core/job/job.h"
#include "io/jobs/choose_device.h"
#include "io/jobs/run_limits.h"
#include "io/model/model_files.h"

namespace sheaf {

/// A model ready to compute: weights, tokenizer and backends. Jobs may use it one after the other.
class OpenModel {
 public:
  /// As the model section of the job says, and what its engine section says of where and how to compute.
  explicit OpenModel(const Job& job);

  /// Refuses a job that wants another model, or to compute elsewhere or otherwise, naming the key.
  void check_fits(const Job& job) const;
  /// Refuses where a file of weights was written over since it was opened.
  void check_weights() const { weights_.check(); }

  const Model& model() const { return model_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const std::string& chat_template() const { return chat_template_; }  ///< the model's own Jinja text
  const BackendKind& kind() const { return *device_.kind; }
  const std::vector<int>& devices() const { return device_.devices; }  ///< one for each engine
  const std::vector<std::string>& notices() const { return notices_; }
  int threads() const;  ///< CPU threads of all engines together
  const StopRules& stop_rules();
  BackendOptions backend_options() const;
  /// One for each engine, made the first time; whoever uses them has them for himself.
  const std::vector<std::shared_ptr<Backend>>& backends();
  Backends make_backends() const { return kind().make(model_, backend_options()); }
  /// Of its files as they were before they were opened; null: they could not be read.
  const nlohmann::ordered_json& fingerprint() const { return fingerprint_; }

 private:
  Job job_;  ///< its model and engine sections
  nlohmann::ordered_json fingerprint_;
  HeldWeights weights_;
  DeviceChoice device_;
  Model model_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::string chat_template_;
  std::vector<std::string> notices_;
  std::unique_ptr<StopRules> stop_rules_;
  std::vector<std::shared_ptr<Backend>> backends_;
};

}  // namespace sheaf
