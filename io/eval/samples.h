#pragma once
#include <string>

#include "core/eval/differences.h"
#include "io/base/file_layer.h"
#include "io/eval/scores.h"

namespace sheaf {

/// What was asked, by the id of the question or document.
using AskedItems = std::unordered_map<std::string, AskedItem>;
AskedItems read_asked(const Job& job);

/// Writes samples.jsonl into the folder of a run: what was asked, what is right, what was answered, and the
/// scores, a line each.
void write_samples(FileLayer& files, const EvalCell& cell, const ScoredRun& run, const AskedItems& asked);

/// Where two runs of one model on one dataset differ; `most` of them with their texts.
DifferencePair find_differences(const Eval& eval, const EvalCell& first, const ScoredRun& first_run,
                                const EvalCell& second, const ScoredRun& second_run, const AskedItems& asked,
                                size_t most);

}  // namespace sheaf
