#include "io/jobs/held_weights.h"

#include <fcntl.h>

#include "core/base/error.h"
#include "io/files/job_fingerprint.h"

namespace sheaf {
namespace {

/// A way to the file that is open, whatever its name now leads to.
std::string path_of(const Descriptor& file) {
  return fmt::format("/proc/self/fd/{}", file.number());
}

}  // namespace

HeldWeights::HeldWeights(const Job::ModelPart& model) {
  for (const std::string& part : {model.path, model.adapter}) {
    if (part.empty()) continue;
    try {
      for (const std::string& path : find_model_files(part)) {
        if (!path.ends_with(".gguf") && !path.ends_with(".safetensors")) continue;
        Descriptor file = open_regular(path, O_RDONLY);
        if (file.number() < 0) continue;
        FileIdentity before = identify_file(path_of(file), Look::every_byte);
        files_.push_back({path, std::move(file), std::move(before)});
      }
    } catch (const std::exception&) {  // loading it says what is wrong
    }
  }
}

void HeldWeights::check() const {
  for (const Held& held : files_)
    if (!held.before.is_same(identify_file(path_of(held.file), Look::every_byte)))
      refuse(
          "{}: the file was written over while sheaf computed with it, so the rows are of neither state; "
          "start "
          "again with --restart, and replace a model by renaming a new file",
          held.path);
}

}  // namespace sheaf
