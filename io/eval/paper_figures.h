#pragma once
#include "io/base/yaml_reader.h"
#include "io/eval/eval_file.h"

namespace sheaf {

/// Reads the `paper` section: figures as the paper prints them, and per dataset what its quality is
/// multiplied by to be in the units of our metric.
void read_paper(YamlMap map, Eval& eval);

}  // namespace sheaf
