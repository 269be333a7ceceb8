#pragma once

#include "core/plan/pipeline.h"
#include "io/jobs/earlier_runs.h"
#include "io/jobs/opened_job.h"

namespace sheaf {

/// What a job would compute; nothing is decoded.
struct JobPlan {
  struct Bin {
    std::string title;
    int64_t records = 0, stacks = 0, head_tokens = 0;
  };
  std::vector<Bin> bins;
  std::map<std::string, int64_t> examples;  ///< shown ones, by category
  PipelineStats read;
  EngineStats engine;   ///< if every answer has the assumed length
  PromptCount prompts;  ///< their parts
  nlohmann::ordered_json reject_reasons;
  int64_t step_tokens = 0;    ///< most tokens of one step
  int64_t kv_peak_bytes = 0;  ///< of keys and values
  int64_t kv_pool_bytes = 0;  ///< memory for keys and values
  int32_t answer_tokens = 0;  ///< assumed
  bool reuses = false;        ///< answers of earlier runs are left out
  int32_t entry_rounds = 0;   ///< rounds after the first one, about the entries of lists
  int32_t longest_object =
      0;                   ///< tokens that one object with lists of objects may have; 0: none is asked for
  bool thinks = false;     ///< what a first round gives are thoughts
  std::string duplicates;  ///< a notice of records with the id of an earlier one; empty: none
  Experts experts;         ///< of the model

  int64_t stacks() const;
  /// Of the instruction and its examples, at most.
  int64_t head_tokens() const;
  /// Tokens that an expert of a layer takes in a step, on average; 0: the model has no experts.
  double rows_per_expert() const;
  nlohmann::ordered_json json() const;
  std::string text(const Job& job) const;  ///< lines for people
};

/// Called with each prompt, counted from 1, and the records that its segments are of.
using OnPrompt = std::function<void(int64_t number, const Stack& stack, const std::vector<Record>& records)>;

/// A prompt and its later rounds as people read them, with marks where the answers of earlier rounds will
/// stand. `name` names a record.
std::string prompt_text(int64_t number, const Stack& stack, const Tokenizer& tokenizer,
                        const std::function<std::string(int32_t record)>& name);

/// `allow_empty`: a corpus of which nothing is left is no mistake. Empty where it was interrupted.
/// `earlier`: runs whose answers are left out of the plan; null: none.
std::optional<JobPlan> plan_job(OpenedJob& opened, int32_t answer_tokens, bool allow_empty,
                                const OnPrompt& on_prompt, const EarlierRuns* earlier = nullptr);

}  // namespace sheaf
