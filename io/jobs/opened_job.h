#pragma once

#include "core/engine/engine.h"
#include "core/model/model.h"
#include "core/plan/planner.h"
#include "core/tokenizer/chat_template.h"
#include "io/base/scratch_file.h"
#include "io/jobs/open_model.h"

namespace sheaf {

/// The chat template that a job asks for: by name, in a file, or the one that fits the model. `jinja` is the
/// model's own.
ChatChoice choose_chat(const Job::ModelPart& model, std::string_view jinja, const Tokenizer& tokenizer);

/// Everything a job needs laid out: model, tokenizer, task. Made once per command.
class OpenedJob {
 public:
  /// `model`: one that is open already; null: the job's own is opened.
  explicit OpenedJob(Job job, std::shared_ptr<OpenModel> model = nullptr);

  const Job& job() const { return job_; }
  const Model& model() const { return open_->model(); }
  const Tokenizer& tokenizer() const { return open_->tokenizer(); }
  const Schema& schema() const { return schema_; }
  const ChatTemplate& chat() const { return chat_; }
  const Examples& examples() const { return examples_; }
  bool on_gpu() const { return open_->kind().gpu; }
  size_t engines() const { return devices().size(); }
  int threads() const { return open_->threads(); }  ///< CPU threads of all engines together
  const StopRules& stop_rules() { return open_->stop_rules(); }
  OpenModel& open_model() const { return *open_; }
  /// What the user should know of how it was laid out.
  const std::vector<std::string>& notices() const { return notices_; }

  /// Takes in standard input where that is the corpus; to be called before corpus(). False when interrupted.
  bool take_input();
  std::unique_ptr<Corpus> corpus() const;
  /// A backend of the draft for each engine; none where the job speculates without one.
  Backends draft_backends();
  Footprint footprint() const;
  /// The task as `job` words it: this job, or a variant of it.
  std::unique_ptr<Task> task(const Job& job) const;
  /// To be called once the draft of the same engine has its memory, of which a GPU then has less.
  EngineOptions engine_options(const Backend& backend, size_t engine = 0) const;
  DraftOptions draft_options(const Backend& draft, size_t engine) const;
  PlanLimits limits(std::vector<Engine*> engines) const;
  /// For a command that decodes no answers; to be called before task().
  void free_answers() {
    free_spans(schema_);
    job_.task.free_spans = true;
  }

  double open_seconds() const { return open_seconds_; }

 private:
  void read_files();
  void open_draft();
  const std::vector<int>& devices() const { return open_->devices(); }
  int64_t pool_bytes(size_t engine) const;

  Job job_;
  std::shared_ptr<OpenModel> open_;
  double open_seconds_ = 0;
  std::vector<std::string> notices_;
  Model draft_;  ///< empty where it is not asked for
  ChatTemplate chat_;
  Schema schema_;
  Examples examples_;
  std::unique_ptr<ScratchFile> standard_input_;
};

}  // namespace sheaf
