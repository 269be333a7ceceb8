#pragma once
#include <string>
#include <vector>

#include "io/jobs/opened_job.h"
#include "io/jobs/run_job.h"

namespace sheaf {

/// An answer that differs.
struct VerifyDifference {
  nlohmann::json id;     ///< of the record
  std::string question;  ///< or the attribute
  std::string method, separate;
};

struct VerifyEnd {
  bool finished = false;  ///< else interrupted
  int64_t records = 0, answers = 0, same = 0, rejects = 0;
  std::vector<VerifyDifference> differences;  ///< the first few

  double match() const { return static_cast<double>(same) / static_cast<double>(answers); }
};

/// Decodes the job's rows as its method does and as its baseline does, and compares: token for token, or
/// where the method words its prompts in another way than the baseline, value for value.
VerifyEnd verify_job(OpenedJob& opened, RunListener& listener);

}  // namespace sheaf
