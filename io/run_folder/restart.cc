#include "io/run_folder/restart.h"

#include <algorithm>
#include <filesystem>
#include <sys/stat.h>

#include "core/base/error.h"
#include "io/run_folder/manifest.h"
#include "io/run_folder/merge_shards.h"
#include "io/run_folder/run_folder.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = ".restart", kKeep = "keep\n";

// The folders beside the real one, not beside a link to it: where the new run is built, where the old one is
// kept, and where it is for a moment if the file system cannot exchange folders.
constexpr const char *kBuilding = ".restart", *kPrevious = ".previous", *kAside = ".replaced";

std::string mark_of(const std::string& folder) {
  return fmt::format("{}/{}", folder, kMark);
}
std::string parent_of(const std::string& folder) {
  return fs::path(folder).parent_path().string();
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

/// Whether a run, a merge or a restart writes files of that name, hidden ones too.
bool is_own(const std::string& name) {
  return is_run_file(name) || name == ".lock" || name == kMergeMark || name == kMark ||
         name == fmt::format("{}.part", kMark);
}

std::string stranger_in(const std::string& folder) {
  for (const std::string& name : list_folder(folder))
    if (!is_own(name)) return name;
  return {};
}

void remove_run(FileLayer& files, const std::string& folder) {
  for (const std::string& name : list_folder(folder))
    if (is_own(name)) files.remove(fmt::format("{}/{}", folder, name));
  files.remove_folder(folder);
}

/// A mount point cannot be renamed.
void check_same_device(const std::string& folder) {
  struct stat own {
  }, around{};
  if (::stat(folder.c_str(), &own) != 0 || ::stat(parent_of(folder).c_str(), &around) != 0) return;
  if (own.st_dev != around.st_dev)
    refuse(
        "{}: --restart builds the new run beside this folder, which is the root of a file system; choose a "
        "folder inside it as output.path",
        folder);
}

/// From wherever an exchange was cut short; the folder is locked.
void finish_exchange(FileLayer& files, const std::string& folder) {
  const std::string old = folder + kBuilding, aside = folder + kAside;
  // What could not be exchanged in one step.
  if (is_folder(aside)) {
    if (!is_folder(folder))
      files.rename(aside, folder);
    else if (file_size(mark_of(folder)) && !is_folder(old))
      files.rename(aside, old);
  }
  const auto mark = read_whole(mark_of(folder));
  if (!mark) return;
  // The mark is the new run's: it stands in its place, and the old one beside it.
  const std::string previous = folder + kPrevious;
  if (is_folder(old) && *mark == kKeep) {
    if (is_folder(previous)) remove_run(files, previous);
    files.rename(old, previous);
  } else if (is_folder(old)) {
    for (const std::string& name : list_folder(old))
      if (!is_own(name)) files.rename(fmt::format("{}/{}", old, name), fmt::format("{}/{}", folder, name));
    files.sync_folder(folder);
    remove_run(files, old);
  }
  files.sync_folder(parent_of(folder));
  files.remove(mark_of(folder));
  files.sync_folder(folder);
}

}  // namespace

Restart::Restart(FileLayer& files, const std::string& folder, bool keep_previous)
    : files_(files),
      folder_(real_path(folder)),
      building_(folder_ + kBuilding),
      keep_previous_(keep_previous) {
  check_own_folder(folder_, true);
  const auto is_hidden = [](const std::string& name) { return name.starts_with('.'); };
  if (!file_size(mark_of(building_)) && !std::ranges::all_of(list_folder(building_), is_hidden))
    refuse("{}: --restart builds the new run there, but the folder holds something else; move it away",
           building_);
  if (const std::string stranger = stranger_in(folder_ + kPrevious); keep_previous && !stranger.empty())
    refuse("{}: --keep-previous would replace this folder, but it holds {}; move it away",
           folder_ + kPrevious, stranger);
  files_.make_folder(folder_);
  check_same_device(folder_);
  lock_ = files_.lock(folder_);
  files_.make_folder(building_);
  if (!file_size(mark_of(building_))) write_whole(files_, building_, std::string(kMark), "\n");
}

bool Restart::is_begun(const nlohmann::ordered_json& fingerprint) const {
  return started_as(building_) == fingerprint;
}

void Restart::swap() {
  lock_->check();
  write_whole(files_, building_, std::string(kMark), keep_previous_ ? kKeep : "\n");
  if (!files_.exchange(building_, folder_)) {
    files_.rename(folder_, folder_ + kAside);
    files_.rename(building_, folder_);
    files_.rename(folder_ + kAside, building_);
  }
  files_.sync_folder(parent_of(folder_));
  finish_exchange(files_, folder_);
}

void settle_restart(FileLayer& files, const std::string& folder) {
  const std::string out = real_path(folder), aside = out + kAside;
  if (!file_size(mark_of(out)) && !is_folder(aside)) return;
  const auto lock = files.lock(is_folder(out) ? out : aside);
  finish_exchange(files, out);
}

std::string unfinished_restart(const std::string& folder) {
  const std::string building = real_path(folder) + kBuilding;
  if (!file_size(mark_of(building))) return {};
  // One that failed before its first answer is not worth a word.
  const auto holds_answers = [&](const std::string& name) {
    return (name.starts_with("rows-") || name.starts_with("answers.log")) &&
           file_size(fmt::format("{}/{}", building, name)).value_or(0) > 0;
  };
  return std::ranges::any_of(list_folder(building), holds_answers) ? building : std::string();
}

}  // namespace sheaf
