#include "io/run_folder/publish_notes.h"

#include <fmt/format.h>
#include <random>
#include <sys/stat.h>

#include "core/text/json_reader.h"
#include "io/base/file_layer.h"
#include "io/base/sha256.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

/// Two runs never have the same, wherever they are computed.
std::string random_claim() {
  std::random_device source;
  std::string text;
  for (int i = 0; i < 4; ++i) text += fmt::format("{:08x}", source());
  return text;
}

}  // namespace

PublishNotes::PublishNotes(const std::string& folder, const std::string& store, const std::string& manifest)
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

bool PublishNotes::is_put(const std::string& file, const std::optional<FileIdentity>& there) const {
  const auto noted = put_.find(file);
  return there && noted != put_.end() && noted->second.there.is_same(*there) &&
         noted->second.here == state_here(file);
}

/// Another run of the same job has the same manifest, but not the same reports.
std::string PublishNotes::state_here(const std::string& file) const {
  struct stat found {};
  if (::stat((folder_ + "/" + file).c_str(), &found) != 0) return {};
  return fmt::format("{} {}.{:09}", found.st_size, found.st_mtim.tv_sec, found.st_mtim.tv_nsec);
}

void PublishNotes::begin() {
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

void PublishNotes::put(const std::string& file, const FileIdentity& there) {
  put_[file] = {there, state_here(file)};
  add({{"put", file},
       {"bytes", there.bytes},
       {"changed", there.changed},
       {"etag", there.etag},
       {"here", put_[file].here}});
}

void PublishNotes::end() {
  add({{"ended", true}});
  ended_ = true;
}

void PublishNotes::add(const ordered_json& line) const {
  const auto file = real_files().open(path_);
  file->append(line.dump() + "\n");
  file->sync();
}

}  // namespace sheaf
