#pragma once

#include "core/job/job.h"
#include "io/base/descriptor.h"
#include "io/base/file_identity.h"

namespace sheaf {

/// The files of weights that a run computes with. They are mapped, not copied, so a file that is written over
/// in its place gives rows of neither state. One that was replaced by another of its name, or removed, is
/// still whole.
class HeldWeights {
 public:
  /// Leaves out what cannot be opened: loading the model says why.
  explicit HeldWeights(const Job::ModelPart& model);
  /// Refuses where one of them was written over since.
  void check() const;

 private:
  struct Held {
    std::string path;
    Descriptor file;
    FileIdentity before;
  };

  std::vector<Held> files_;
};

}  // namespace sheaf
