#include "io/run_folder/check_run.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

#include "core/base/error.h"
#include "io/base/file_layer.h"
#include "io/base/sha256.h"
#include "io/base/store.h"
#include "io/run_folder/manifest.h"

namespace sheaf {
namespace {

constexpr int64_t kMostManifest = int64_t{1} << 30;  // bytes

/// The files of a run, wherever it is.
struct RunPlace {
  std::vector<std::string> names;
  /// False where there is no such file.
  std::function<bool(const std::string& file, const std::function<void(std::string_view)>& take)> read;
};

RunPlace open_place(const std::string& place) {
  if (!is_uri(place))
    return {list_folder(place), [place](const std::string& file, const auto& take) {
              return read_pieces(place + "/" + file, take);
            }};
  const std::shared_ptr<Store> store = open_store(place);
  RunPlace run{{},
               [store](const std::string& file, const auto& take) { return store->read_pieces(file, take); }};
  for (const auto& [name, about] : store->list()) run.names.push_back(name);
  return run;
}

std::optional<std::string> trouble_of(const RunPlace& run, const PublishedFile& file) {
  Sha256 sum;
  int64_t bytes = 0;
  const bool there = run.read(file.name, [&](std::string_view piece) {
    sum.add(piece);
    bytes += static_cast<int64_t>(piece.size());
  });
  if (!there) return "the file is missing";
  if (bytes != file.bytes)
    return fmt::format("the file has {} bytes, but {} in the manifest", bytes, file.bytes);
  if (sum.hex() != file.sha256) return "the file's contents changed: its SHA-256 is not that of the manifest";
  return std::nullopt;
}

}  // namespace

RunCheck check_run(const std::string& place) {
  const RunPlace run = open_place(place);
  const auto has = [&](const std::string& name) {
    return std::ranges::find(run.names, name) != run.names.end();
  };
  std::string text;
  const auto take = [&](std::string_view piece) {
    if (std::ssize(text) + std::ssize(piece) > kMostManifest)
      refuse("{}/manifest.json: the file is too large for a manifest", place);
    text += piece;
  };
  if (!has("manifest.json") || !run.read("manifest.json", take))
    refuse("{} is not a finished run: it has no manifest.json; name the folder of a finished run", place);
  const Manifest manifest = parse_manifest(text, place + "/manifest.json", kRestart);
  RunCheck check{manifest.rows, manifest.rejects, std::ssize(manifest.files), 0, {}};
  const auto note = [&](const std::string& file, std::string_view trouble) {
    check.troubles.push_back(fmt::format("{}/{}: {}", place, file, trouble));
  };
  if (!has("_SUCCESS"))
    note("_SUCCESS", "the file is missing: the run is not finished, or not published whole");
  if (has("_publishing")) note("_publishing", "a run is being published there, or its publication broke off");
  for (const PublishedFile& file : manifest.files) {
    check.bytes += file.bytes;
    if (const auto trouble = trouble_of(run, file)) note(file.name, *trouble);
  }
  for (const std::string& name : run.names)
    if (is_rows_name(name) &&
        std::ranges::find(manifest.files, name, &PublishedFile::name) == manifest.files.end())
      note(name, "the manifest does not list this file");
  return check;
}

}  // namespace sheaf
