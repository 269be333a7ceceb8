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

bool is_among(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

/// Whether the store has the whole run: what was put may have been removed since.
bool is_whole(Store& store, const std::string& folder, const std::vector<std::string>& there) {
  return is_among(there, kSuccess) && store.read(kManifest) == manifest_of(folder) &&
         std::ranges::all_of(files_to_publish(folder),
                             [&](const std::string& name) { return is_among(there, name); });
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
  if (replace || names.empty()) return;
  // Without a manifest, another run is being published, or broke off.
  const std::string manifest = manifest_of(folder);
  if (PublishNotes(folder, store.name(), manifest).begun()) return;
  if (!is_among(names, kManifest) || store.read(kManifest) != manifest) refuse_other(store);
}

bool is_unpublished(Store& store, const std::string& folder) {
  const std::string manifest = manifest_of(folder);
  return file_size(folder + "/" + kSuccess) && PublishNotes(folder, store.name(), manifest).begun() &&
         !is_whole(store, folder, store.list());
}

int64_t publish_run(Store& store, const std::string& folder, bool replace) {
  const std::string manifest = manifest_of(folder);
  if (manifest.empty() || !file_size(folder + "/" + kSuccess)) fail("{}: the run is not finished", folder);
  PublishNotes notes(folder, store.name(), manifest);
  if (replace) notes.begin();  // should the store be gone now, is_unpublished() knows
  const std::vector<std::string> names = files_to_publish(folder), there = store.list();
  if (is_whole(store, folder, there)) return 0;
  const bool own = notes.begun() || (is_among(there, kManifest) && store.read(kManifest) == manifest);
  if (!there.empty() && !replace && !own) refuse_other(store);
  store.remove(kSuccess);
  store.remove(kManifest);
  notes.begin();
  int64_t count = 0;
  for (const std::string& name : names) {
    if (notes.has(name) && is_among(there, name)) continue;
    store.put_file(name, folder + "/" + name);
    notes.add(name);
    ++count;
  }
  // What an earlier run had more of.
  for (const std::string& name : there)
    if (is_published(name) && name != kManifest && name != kSuccess && !is_among(names, name))
      store.remove(name);
  store.put(kManifest, manifest);
  store.put(kSuccess, "");
  return count + 2;
}

}  // namespace sheaf
