#include "io/manifest.h"

#include "core/error.h"
#include "core/text/json_reader.h"
#include "io/file_layer.h"
#include "io/sha256.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr int64_t kMostBytes = int64_t{1} << 30;  // its fingerprint has an entry for every corpus file

/// Reads one file's JSON, member by member.
class ManifestReader {
 public:
  ManifestReader(const std::string& path, const std::string& mend) : path_(path), mend_(mend) {}

  Manifest read(const std::string& text) const {
    std::string trouble;
    ordered_json json = read_json<ordered_json>(text, {}, &trouble);
    if (!trouble.empty()) reject(trouble);
    Manifest manifest;
    try {
      if (json.at("manifest") != kVersion) reject("its version is another");
      manifest.rows = count_of(json, "rows");
      manifest.rejects = count_of(json, "rejects");
      manifest.first = count_of(json.at("corpus_rows"), "first");
      manifest.end = count_of(json.at("corpus_rows"), "end");
      for (const ordered_json& file : json.at("files"))
        manifest.files.push_back({name_of(file), count_of(file, "rows"), count_of(file, "bytes"),
                                  file.at("sha256").get<std::string>()});
      manifest.fingerprint = std::move(json.at("fingerprint"));
    } catch (const ordered_json::exception&) {
      reject("a member is missing or of another type");
    }
    if (!manifest.fingerprint.is_object()) reject("fingerprint is not an object");
    return manifest;
  }

 private:
  [[noreturn]] void reject(std::string_view why) const {
    refuse("{}: not a manifest that sheaf wrote: {}; {}", path_, why, mend_);
  }

  int64_t count_of(const ordered_json& from, const char* key) const {
    const ordered_json& value = from.at(key);
    if (!value.is_number_integer() || value < 0 || value > INT64_MAX)
      reject(fmt::format("{} is not a count", key));
    return value.get<int64_t>();
  }

  std::string name_of(const ordered_json& file) const {
    const auto& name = file.at("name").get_ref<const std::string&>();
    // Only files of the folder itself, whatever somebody wrote into the manifest.
    if (name.empty() || name.starts_with('.') || name.find('/') != std::string::npos)
      reject("a file has a name that sheaf does not give");
    return name;
  }

  const std::string &path_, &mend_;
};

}  // namespace

ordered_json manifest_json(const Manifest& manifest) {
  ordered_json files = ordered_json::array();
  for (const PublishedFile& file : manifest.files)
    files.push_back(
        {{"name", file.name}, {"rows", file.rows}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  return {{"manifest", kVersion},
          {"rows", manifest.rows},
          {"rejects", manifest.rejects},
          {"corpus_rows", {{"first", manifest.first}, {"end", manifest.end}}},
          {"files", std::move(files)},
          {"fingerprint_sha256", sha256(manifest.fingerprint.dump())},
          {"fingerprint", manifest.fingerprint}};
}

Manifest read_manifest(const std::string& folder, const std::string& mend) {
  const std::string path = folder + "/manifest.json";
  const auto text = read_whole(path, kMostBytes);
  if (!text) refuse("{}: is missing; {}", path, mend);
  return ManifestReader(path, mend).read(*text);
}

}  // namespace sheaf
