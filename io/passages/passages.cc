#include "io/passages/passages.h"

#include "io/base/file_layer.h"

namespace sheaf {

Passages::Passages(PassageFiles files, std::vector<std::string>& notices)
    : files_(std::move(files)), index_(open_passages(files_, notices)) {}

std::string Passages::notice() const {
  const std::lock_guard lock(mutex_);
  return notice_;
}

std::shared_ptr<const PassageIndex> Passages::current() const {
  const std::lock_guard lock(mutex_);
  return index_;
}

std::shared_ptr<const PassageIndex> Passages::made_again(const std::shared_ptr<const PassageIndex>& damaged,
                                                         const BadIndex& bad) {
  const std::lock_guard lock(mutex_);
  if (index_ != damaged) return index_;  // another thread has done it
  const std::string path = index_path(files_);
  real_files().remove(path);
  std::vector<std::string> notices;
  index_ = open_passages(files_, notices);
  notice_ = fmt::format("the index {} was damaged ({}) and was made again", path, bad.reason);
  return index_;
}

}  // namespace sheaf
