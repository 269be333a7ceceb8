#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace sheaf {

struct InspectSettings {
  std::string path;
  std::string model;  ///< of the proposed job; empty: the default model, where it is installed
  std::string write;  ///< the job file to write; empty: none. A schema goes beside it
};

/// A model, tokenizer or corpus as `sheaf inspect` prints it: {"path", "model", "tokenizer"} with what the
/// path has of the two, or {"path", "corpus"} or {"path", "dataset"} (describe_dataset.h) with a proposed
/// job, which is whole, and its schema. Writes both where the settings say so: {"wrote": [files]}. Refuses
/// anything else, and to replace a file.
nlohmann::ordered_json describe_path(const InspectSettings& settings);

/// Lines for people about what describe_path() found, without the path and the proposed job.
std::string description_text(const nlohmann::ordered_json& about);

}  // namespace sheaf
