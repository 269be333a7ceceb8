#include "io/eval/check_runs.h"

#include <set>

#include "core/base/error.h"
#include "io/base/file_layer.h"
#include "io/base/job_changes.h"
#include "io/files/job_fingerprint.h"
#include "io/model/model_files.h"
#include "io/run_folder/run_folder.h"

namespace sheaf {
namespace {

void check_folder(const Job& job) {
  const nlohmann::ordered_json before = started_as(job.output.path);
  if (!before.is_object()) return;
  const bool gpu = before.value("device", "") == "cuda";
  const std::string changes = describe_changes(before, job_fingerprint(job, gpu, {}));
  if (!changes.empty())
    refuse(
        "{}: the folder holds a run, but since then {}; choose another folder with --output, or run "
        "everything again with --restart",
        job.output.path, changes);
}

}  // namespace

bool holds_other_corpus(const Job& job) {
  const auto sums = [](const nlohmann::ordered_json& corpus) {
    std::vector<nlohmann::ordered_json> found;
    for (const auto& [file, about] : corpus.items()) {
      found.push_back(about);
      if (about.is_object()) found.back().erase("changed");  // requests are written anew each time
    }
    return found;
  };
  const nlohmann::ordered_json before = started_as(job.output.path);
  return before.is_object() && sums(before.value("corpus", nlohmann::ordered_json::object())) !=
                                   sums(corpus_fingerprint(job.input));
}

void check_runs(const std::vector<EvalCell>& cells, bool restart) {
  std::set<std::string> models;
  for (const EvalCell& cell : cells) {
    if (cell.lengths) {
      if (!restart) measured_before(cell.job, *cell.lengths);
      continue;
    }
    const bool finished = !restart && file_size(cell.job.output.path + "/_SUCCESS");
    // Without its adapter: merging that takes longer than a check may.
    if (!finished && models.insert(cell.job.model.path).second) {
      load_model(cell.job.model.path);
      load_tokenizer(cell.job.model.path);
    }
    if (!restart) check_folder(cell.job);
  }
}

}  // namespace sheaf
