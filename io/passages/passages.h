#pragma once
#include <mutex>
#include <string>
#include <vector>

#include "io/passages/build_index.h"

namespace sheaf {

/// A collection of passages with its index, which is made again where damage shows while it is used.
class Passages {
 public:
  Passages(PassageFiles files, std::vector<std::string>& notices);

  /// Calls `use` with the index, and once more where the index was damaged and is made again: what the first
  /// call did must not count. Any number of threads may call it.
  template <class Use>
  void with_index(const Use& use) {
    const std::shared_ptr<const PassageIndex> index = current();
    try {
      use(*index);
    } catch (const BadIndex& bad) {
      use(*made_again(index, bad));
    }
  }

  /// What became of the index since it was opened; empty: nothing.
  std::string notice() const;

 private:
  std::shared_ptr<const PassageIndex> current() const;
  std::shared_ptr<const PassageIndex> made_again(const std::shared_ptr<const PassageIndex>& damaged,
                                                 const BadIndex& bad);

  mutable std::mutex mutex_;
  PassageFiles files_;
  std::shared_ptr<const PassageIndex> index_;
  std::string notice_;
};

}  // namespace sheaf
