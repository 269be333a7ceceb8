#include "io/run_folder/publish.h"

#include <algorithm>
#include <set>
#include <vector>

#include "io/base/file_layer.h"
#include "io/base/sha256.h"
#include "io/run_folder/manifest.h"

namespace sheaf {
namespace {

constexpr const char* kManifest = "manifest.json";
constexpr const char* kSuccess = "_SUCCESS";
constexpr const char* kNotes = ".published";

/// Files that others read. The journal, and what may still grow, are of the folder only.
bool is_published(const std::string& name) {
  return is_run_file(name) && !name.ends_with(".part") && name != "journal" && name != "progress.json";
}

std::vector<std::string> files_to_publish(const std::string& folder) {
  std::vector<std::string> names;
  for (const std::string& name : list_folder(folder))
    if (is_published(name) && name != kManifest && name != kSuccess) names.push_back(name);
  return names;
}

/// What was put of a run that is being published, in a file of its folder.
class PublishNotes {
 public:
  PublishNotes(const std::string& folder, const std::string& store, const std::string& manifest)
      : path_(folder + "/" + kNotes), head_(sha256(manifest) + " " + store) {
    bool first = true;
    read_lines(path_, [&](const std::string& line) {
      if (first) begun_ = line == head_;
      if (!first && begun_) put_.insert(line);
      first = false;
    });
  }

  bool begun() const { return begun_; }
  bool has(const std::string& name) const { return put_.contains(name); }

  void begin() {
    if (begun_) return;
    real_files().remove(path_);
    add(head_);
    begun_ = true;
  }

  void add(const std::string& line) {
    const auto file = real_files().open(path_);
    file->append(line + "\n");
    file->sync();
    put_.insert(line);
  }

 private:
  std::string path_, head_;  // which run, and where it goes
  bool begun_ = false;
  std::set<std::string> put_;
};

std::string manifest_of(const std::string& folder) {
  return read_whole(folder + "/" + kManifest).value_or("");
}

[[noreturn]] void refuse_other(const Store& store) {
  refuse("{}: another run is published there; add --restart to replace it, or choose another output.path",
         store.name());
}

}  // namespace

void check_store(Store& store, const std::string& folder, bool replace) {
  const std::vector<std::string> names = store.list();
  const auto other = std::ranges::find_if(names, [](const std::string& name) { return !is_published(name); });
  if (other != names.end())
    refuse("{}: the folder holds other files than those of a run, such as {}; choose another output.path",
           store.name(), *other);
  if (replace || std::ranges::find(names, kManifest) == names.end()) return;
  const std::string manifest = manifest_of(folder);
  if (store.read(kManifest) != manifest && !PublishNotes(folder, store.name(), manifest).begun())
    refuse_other(store);
}

bool is_unpublished(Store& store, const std::string& folder) {
  const std::string manifest = manifest_of(folder);
  return file_size(folder + "/" + kSuccess) && PublishNotes(folder, store.name(), manifest).begun() &&
         !(store.read(kSuccess) && store.read(kManifest) == manifest);
}

int64_t publish_run(Store& store, const std::string& folder, bool replace) {
  const std::string manifest = manifest_of(folder);
  if (manifest.empty() || !file_size(folder + "/" + kSuccess)) fail("{}: the run is not finished", folder);
  PublishNotes notes(folder, store.name(), manifest);
  if (replace) notes.begin();  // should the store be gone now, is_unpublished() knows
  const std::vector<std::string> names = files_to_publish(folder), there = store.list();
  const auto is_there = [&](const char* name) { return std::ranges::find(there, name) != there.end(); };
  if (is_there(kSuccess) && store.read(kManifest) == manifest) return 0;

  if ((is_there(kManifest) || is_there(kSuccess)) && !replace && !notes.begun()) refuse_other(store);
  store.remove(kSuccess);
  store.remove(kManifest);
  notes.begin();
  int64_t count = 0;
  for (const std::string& name : names) {
    if (notes.has(name)) continue;
    store.put_file(name, folder + "/" + name);
    notes.add(name);
    ++count;
  }
  // What an earlier run had more of.
  for (const std::string& name : there)
    if (is_published(name) && name != kManifest && name != kSuccess &&
        std::ranges::find(names, name) == names.end())
      store.remove(name);
  store.put(kManifest, manifest);
  store.put(kSuccess, "");
  return count + 2;
}

}  // namespace sheaf
