#pragma once
#include <string>
#include <vector>

#include "core/model/work.h"
#include "core/plan/planner.h"
#include "core/task/parts.h"

namespace sheaf {

/// A token-level workload for benchmarks: the first line of the file holds the instruction's ids, every other
/// one a context (ids, or a list of documents, each a list of ids) with its questions (ids and a fixed number
/// of answer tokens), which may carry `slots` (key ids and value tokens). The file may be compressed (.gz,
/// .zst).
struct Workload {
  std::string name;
  std::vector<std::vector<RecordParts>> bins;  ///< records that may share a prompt
  int64_t common = 0;                          ///< leading instruction tokens that all bins have alike
  int64_t questions = 0;                       ///< questions or products
  int32_t vocab = 0;                           ///< one more than the largest id
};

/// Reads a workload. `slots`: every question is a document whose slots are decoded (its context joins the
/// instruction). `apart`: the documents of a context are read one by one; otherwise they are one text.
Workload read_workload(const std::string& path, bool slots, bool apart = false);

/// The rows of a workload for a planner, in the order of the file.
std::vector<ReadyRecord> workload_rows(const Workload& workload);

/// The least that any method must compute for the workload's answers: every distinct token once, each seeing
/// its instruction, document and question only, as far as the windows of the layers go. Where documents are
/// read one by one, a question and its answer are computed after each of them, and once without any.
Work least_work(const Workload& workload, const LayerWindows& windows);

}  // namespace sheaf
