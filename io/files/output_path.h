#pragma once
#include <ctime>
#include <string>

#include "io/base/yaml_reader.h"

namespace sheaf {

struct OutputPath {
  std::string path;
  bool dated = false;  ///< it has the date or the time in it
};

/// output.path of a job file, with {date} ("2026-03-01"), {time} ("23-05-09", both local) and {job} (the
/// file's name without its ending) filled in. Refuses other names in braces.
OutputPath read_output_path(const YamlNode& node, const std::string& job_file, std::time_t now);

}  // namespace sheaf
