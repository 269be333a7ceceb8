#pragma once

#include "core/engine/kv_store.h"
#include "io/jobs/opened_job.h"
#include "io/jobs/run_job.h"

namespace sheaf {

struct PrefillEnd {
  bool finished = false;  ///< not interrupted
  int64_t records = 0;
  int64_t rejects = 0;
  std::string first_reject;  ///< with its place
  int64_t computed_tokens = 0;
  int64_t read_tokens = 0;  ///< tokens that were in the store before
  double seconds = 0;
  KvStoreUse store;
};

/// Fills the job's store with the keys and values that its prompts share: instructions, examples, documents.
/// No answer is decoded.
PrefillEnd prefill_job(OpenedJob& opened, RunListener& listener);

}  // namespace sheaf
