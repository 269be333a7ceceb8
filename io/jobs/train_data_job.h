#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "io/jobs/opened_job.h"

namespace sheaf {

struct TrainDataSettings {
  std::string to;                    ///< the Parquet file to write
  std::string gold;                  ///< where right answers are; empty: the job's corpus
  std::string gold_format = "auto";  ///< as `sheaf score` has it
  std::string rows;                  ///< or a run whose rows are taken for right
  bool unmentioned_absent = false;   ///< extract: an attribute that gold does not name is to be null
};

struct TrainDataEnd {
  bool finished = false;  ///< else interrupted
  int64_t records = 0, prompts = 0, tokens = 0, answers = 0, answer_tokens = 0;
  int64_t without_gold = 0;          ///< records that gold says nothing about
  int64_t repeated = 0;              ///< records left out, whose id an earlier one has
  std::string first_repeated;        ///< the first such id
  int64_t unreadable = 0;            ///< gold values that the attribute's type does not hold
  std::string notice;                ///< what the user should know of names in the gold; may be empty
  int64_t rejected = 0;              ///< records
  std::vector<std::string> rejects;  ///< the first of them, with their places
};

/// Writes the prompts of a job with their right answers: what the model reads and writes when the job is
/// decoded, and what each token sees then.
TrainDataEnd write_train_data(OpenedJob& opened, const TrainDataSettings& settings);

}  // namespace sheaf
