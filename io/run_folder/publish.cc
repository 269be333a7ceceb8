#include "io/run_folder/publish.h"

#include <algorithm>
#include <random>
#include <sys/stat.h>

#include "core/text/json_reader.h"
#include "io/base/file_layer.h"
#include "io/base/sha256.h"
#include "io/run_folder/manifest.h"

namespace sheaf {
namespace {

constexpr const char* kManifest = "manifest.json";
constexpr const char* kSuccess = "_SUCCESS";
constexpr const char* kClaim = "_publishing";

using nlohmann::ordered_json;
using Listing = std::map<std::string, FileIdentity>;

/// Files that others read. The journal, and what may still grow, are of the folder only.
bool is_published(const std::string& name) {
  return is_run_file(name) && !name.ends_with(".part") && name != "journal" && name != "progress.json";
}

/// Whether an object says whose run the others are of, or that all are there.
bool is_mark(const std::string& name) {
  return name == kManifest || name == kSuccess || name == kClaim;
}

[[noreturn]] void refuse_other(const Store& store) {
  refuse("{}: another run is published there; add --restart to replace it, or choose another output.path",
         store.name());
}

[[noreturn]] void refuse_begun(const Store& store) {
  refuse(
      "{}: another run is being published there, or its publication broke off; wait for it or rerun its "
      "command, add --restart to replace it, or choose another output.path",
      store.name());
}

/// Two runs never have the same, wherever they are computed.
std::string random_claim() {
  std::random_device source;
  std::string text;
  for (int i = 0; i < 4; ++i) text += fmt::format("{:08x}", source());
  return text;
}

/// What was put of a run that is being published, in the file .published of its folder.
class PublishNotes {
 public:
  /// Notes of another run, or of another store, are not taken for this one's.
  PublishNotes(const std::string& folder, const std::string& store, const std::string& manifest)
      : folder_(folder),
        path_(folder + "/.published"),
        head_{{"manifest", sha256(manifest)}, {"store", store}} {
    bool first = true;
    read_lines(path_, [&](const std::string& text) {
      std::string trouble;  // a line that was cut off says nothing
      const ordered_json line = read_json<ordered_json>(text, {}, &trouble);
      if (!trouble.empty() || !line.is_object()) return;
      try {
        if (first && line.at("manifest") == head_["manifest"] && line.at("store") == store)
          claim_ = line.at("claim").get<std::string>();
        first = false;
        if (!begun()) return;
        if (line.contains("put"))
          put_[line.at("put").get<std::string>()] = {
              {line.at("bytes").get<int64_t>(), line.at("changed").get<int64_t>(),
               line.at("etag").get<std::string>(), "", FileIdentity::Seen::nothing},
              line.at("here").get<std::string>()};
        if (line.contains("ended")) ended_ = line.at("ended") == true;
      } catch (const ordered_json::exception&) {  // neither does one that was not written by sheaf
      }
    });
  }

  bool begun() const { return !claim_.empty(); }
  bool ended() const { return ended_; }
  /// What stands in the store's _publishing while this run is being published; empty before it is begun.
  const std::string& claim() const { return claim_; }

  /// Whether the file was put as it is here now, and the store has it as it was put.
  bool is_put(const std::string& file, const std::optional<FileIdentity>& there) const {
    const auto noted = put_.find(file);
    return there && noted != put_.end() && noted->second.there.is_same(*there) &&
           noted->second.here == state_here(file);
  }

  /// Begins, or continues after an end.
  void begin() {
    if (begun()) {
      if (ended_) add({{"ended", false}});
      ended_ = false;
      return;
    }
    real_files().remove(path_);
    claim_ = random_claim();
    head_["claim"] = claim_;
    add(head_);
  }

  void put(const std::string& file, const FileIdentity& there) {
    put_[file] = {there, state_here(file)};
    add({{"put", file},
         {"bytes", there.bytes},
         {"changed", there.changed},
         {"etag", there.etag},
         {"here", put_[file].here}});
  }

  void end() {
    add({{"ended", true}});
    ended_ = true;
  }

 private:
  struct Put {
    FileIdentity there;
    std::string here;  ///< size and time of the file that was put
  };

  void add(const ordered_json& line) const {
    const auto file = real_files().open(path_);
    file->append(line.dump() + "\n");
    file->sync();
  }

  /// Another run of the same job has the same manifest, but not the same reports.
  std::string state_here(const std::string& file) const {
    struct stat found {};
    if (::stat((folder_ + "/" + file).c_str(), &found) != 0) return {};
    return fmt::format("{} {}.{:09}", found.st_size, found.st_mtim.tv_sec, found.st_mtim.tv_nsec);
  }

  std::string folder_, path_;
  ordered_json head_;  ///< which run, and where it goes
  std::string claim_;
  std::map<std::string, Put> put_;
  bool ended_ = false;
};

/// One finished run on its way to a store.
class Publication {
 public:
  Publication(Store& store, const std::string& folder)
      : store_(store),
        folder_(folder),
        manifest_(read_whole(folder + "/" + kManifest).value_or("")),
        notes_(folder, store.name(), manifest_) {}

  PublishNotes& notes() { return notes_; }
  bool is_finished() const { return !manifest_.empty() && file_size(folder_ + "/" + kSuccess).has_value(); }

  /// Refuses what another run put there. Its claim and its manifest are read by name: a listing may be a
  /// little older than they are.
  void check_own(const Listing& there) {
    // An empty one was cut off before it said anything.
    if (const auto claim = store_.read(kClaim); claim && !claim->empty()) {
      if (!notes_.begun() || claim != notes_.claim()) refuse_begun(store_);
      return;
    }
    if (const auto manifest = store_.read(kManifest)) {
      if (manifest != manifest_) refuse_other(store_);
      return;
    }
    // Somebody removed the manifest; then only the notes say whose the files are.
    const bool ours = std::ranges::all_of(there, [&](const auto& file) {
      return is_mark(file.first) || notes_.is_put(file.first, store_.identify(file.first));
    });
    if (!ours) refuse_begun(store_);
  }

  int64_t put(bool replace) {
    if (!is_finished()) fail("{}: the run is not finished", folder_);
    if (replace) notes_.begin();  // should the store be gone now, is_unpublished() knows
    const Listing there = store_.list();
    if (is_whole(there)) return 0;
    if (!replace) check_own(there);
    notes_.begin();
    store_.put(kClaim, notes_.claim());
    // Another run may have been finished since the listing.
    if (const auto manifest = store_.read(kManifest); !replace && manifest && manifest != manifest_) {
      store_.remove(kClaim);
      refuse_other(store_);
    }
    store_.remove(kSuccess);
    store_.remove(kManifest);
    const int64_t count = put_files();
    const std::vector<std::string> names = files();
    for (const auto& [name, about] : there)  // what an earlier run had more of
      if (is_published(name) && !is_mark(name) && std::ranges::find(names, name) == names.end())
        store_.remove(name);
    check_all();
    put_mark(kManifest, manifest_);
    put_mark(kSuccess, "");
    check_all();  // another run may have come between the last look and the marks
    if (!notes_.is_put(kManifest, store_.identify(kManifest))) give_up(kManifest, "is not as it was put");
    store_.remove(kClaim);
    notes_.end();
    return count + 2;
  }

 private:
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const std::string& name : list_folder(folder_))
      if (is_published(name) && !is_mark(name)) names.push_back(name);
    return names;
  }

  /// Whether the store has the whole run as it was put: it may have been changed since.
  bool is_whole(const Listing& there) {
    const std::vector<std::string> names = files();
    const auto is_extra = [&](const auto& file) {
      return !is_mark(file.first) && std::ranges::find(names, file.first) == names.end();
    };
    if (std::ranges::any_of(there, is_extra)) return false;
    const auto is_put = [&](const std::string& name) { return notes_.is_put(name, store_.identify(name)); };
    return notes_.ended() && is_put(kSuccess) && is_put(kManifest) && store_.read(kManifest) == manifest_ &&
           !store_.identify(kClaim) && std::ranges::all_of(names, is_put);
  }

  void put_mark(const char* name, const std::string& text) {
    store_.put(name, text);
    if (const auto there = store_.identify(name)) notes_.put(name, *there);
  }

  int64_t put_files() {
    std::map<std::string, std::string> sums;
    for (const PublishedFile& file : parse_manifest(manifest_, folder_ + "/" + kManifest, kRestart).files)
      sums[file.name] = file.sha256;
    int64_t count = 0;
    for (const std::string& name : files()) {
      if (notes_.is_put(name, store_.identify(name))) continue;
      store_.put_file(name, folder_ + "/" + name, sums[name]);
      const auto there = store_.identify(name);
      if (!there) give_up(name, "was removed by somebody else");
      notes_.put(name, *there);
      check_still_claimed();
      ++count;
    }
    return count;
  }

  /// Before _SUCCESS says so, and after it: one listing has all files of the run in their sizes, and no
  /// others, and each is as it was put. Times of listings are no help: stores round them in other ways than
  /// those of single objects.
  void check_all() {
    const std::vector<std::string> names = files();
    const Listing there = store_.list();
    for (const std::string& name : names) {
      const auto found = there.find(name);
      if (found == there.end() || found->second.bytes != file_size(folder_ + "/" + name) ||
          !notes_.is_put(name, store_.identify(name)))
        give_up(name, "is not as it was put a moment ago");
    }
    for (const auto& [name, about] : there)
      if (!is_mark(name) && std::ranges::find(names, name) == names.end())
        give_up(name, "was put by somebody else meanwhile");
    check_still_claimed();
  }

  /// Should another run have come between, what stands there is of both, and no _SUCCESS may say otherwise.
  void check_still_claimed() {
    if (store_.read(kClaim) == notes_.claim()) return;
    store_.remove(kSuccess);
    refuse_begun(store_);
  }

  [[noreturn]] void give_up(const std::string& name, const char* what) {
    store_.remove(kSuccess);  // of whoever put it meanwhile: the files are of two runs
    fail_for_now("{}/{}: the file {}; let only one command publish there, and rerun this one", store_.name(),
                 name, what);
  }

  Store& store_;
  const std::string& folder_;
  const std::string manifest_;
  PublishNotes notes_;
};

}  // namespace

void check_store(Store& store, const std::string& folder, bool replace) {
  const Listing there = store.list();
  for (const auto& [name, about] : there)
    if (!is_published(name) && name != kClaim)
      refuse("{}: the folder holds other files than those of a run, such as {}; choose another output.path",
             store.name(), name);
  if (!replace) Publication(store, folder).check_own(there);
}

bool is_unpublished(Store& store, const std::string& folder) {
  Publication run(store, folder);
  return run.is_finished() && run.notes().begun() && !run.notes().ended();
}

int64_t publish_run(Store& store, const std::string& folder, bool replace) {
  const auto lock = real_files().lock(folder);  // no second command publishes the same run meanwhile
  return Publication(store, folder).put(replace);
}

}  // namespace sheaf
