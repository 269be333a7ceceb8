#pragma once
#include <string>

#include "io/model/family.h"

namespace sheaf {

/// A model's description by the name of a shape, from a config.json or a folder with one, or from a model's
/// files; only a config.json says the family. `from`: where the name was asked for.
FileConfig read_model_config(const std::string& name, const std::string& from = "model");

}  // namespace sheaf
