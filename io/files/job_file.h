#pragma once
#include <string>
#include <vector>

#include "core/job/job.h"
#include "io/base/yaml_reader.h"
#include "io/files/estimate_section.h"

namespace sheaf {

/// A change to a job. Errors about it begin with the place of its value.
struct JobChange {
  std::string key;  ///< "method.documents"
  YamlPtr value;
};

/// The values of `--set` as changes.
std::vector<JobChange> set_options(const std::vector<std::string>& overrides);

/// Reads a job file (paths in it are relative to its folder), applies `key.path=value` overrides and checks
/// it: an unknown key, a wrong type, a value out of range or a missing file is an error with file, line and
/// the nearest valid key. Without `files` the model and the corpus may be missing, and few-shot examples are
/// not read.
Job read_job(const std::string& path, const std::vector<std::string>& overrides, bool files = true);
/// The same of a file that is read.
Job read_job(const std::string& path, YamlPtr root, const std::vector<JobChange>& changes, bool files);

/// The `estimate` section of a job file, with the overrides; the rest is not looked at.
EstimateWishes read_job_estimate(const std::string& path, const std::vector<std::string>& overrides);

}  // namespace sheaf
