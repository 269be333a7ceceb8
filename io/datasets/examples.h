#pragma once
#include <string>

#include "io/datasets/dataset.h"

namespace sheaf {

/// `count` examples out of a dataset, each a passage with one question and its first answer as a prompt shows
/// them; `heading` stands before a passage ("Passage:\n"). Which ones is the same every time. Refuses a
/// dataset that has fewer passages with an answered question.
std::string few_shot_examples(DatasetReader& dataset, int32_t count, const std::string& heading);

}  // namespace sheaf
