#include <CLI/Version.hpp>
#include <arrow/config.h>
#include <arrow/util/compression.h>
#include <dlfcn.h>
#include <filesystem>
#include <fmt/format.h>
#include <openssl/crypto.h>

#include "io/machine/backend_kinds.h"

namespace sheaf {
namespace {

using Versions = std::vector<std::pair<std::string, std::string>>;

std::string dotted(int major, int minor, int patch) {
  return fmt::format("{}.{}.{}", major, minor, patch);
}

Versions library_versions() {
  Versions versions = {{"Arrow", arrow::GetBuildInfo().version_string},
                       {"yaml-cpp", SHEAF_YAML_CPP_VERSION},
                       {"sentencepiece", SHEAF_SENTENCEPIECE_VERSION},
                       {"nlohmann-json", dotted(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                                                NLOHMANN_JSON_VERSION_PATCH)},
                       {"fmt", dotted(FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
                       {"CLI11", CLI11_VERSION},
                       {"OpenSSL", OpenSSL_version(OPENSSL_VERSION_STRING)}};
  return versions;
}

/// The file that Arrow was loaded from: a wheel uses that of the installed pyarrow.
std::string arrow_file() {
  Dl_info info{};
  if (dladdr(&arrow::GetBuildInfo(), &info) == 0 || !info.dli_fname) return "";
  std::error_code ignored;
  return std::filesystem::weakly_canonical(info.dli_fname, ignored).string();
}

}  // namespace

MachineFact examine_libraries() {
  MachineFact fact{"libraries", "", "", {}};
  Versions versions = library_versions();
  add_cuda_libraries(versions, fact.fix);
  for (const auto& [name, version] : versions) {
    fact.text += fmt::format("{}{} {}", fact.text.empty() ? "" : ", ", name, version);
    fact.details[name] = version;
  }
  fact.details["arrow_file"] = arrow_file();
  // Arrow can be built without what corpora and Parquet rows are packed with.
  std::string missing;
  for (const auto& [name, codec] :
       {std::pair{"gzip", arrow::Compression::GZIP}, {"zstd", arrow::Compression::ZSTD}}) {
    const bool there = arrow::util::Codec::IsAvailable(codec);
    fact.details[name] = there;
    if (!there) missing += fmt::format("{}{}", missing.empty() ? "" : " and ", name);
  }
  if (missing.empty())
    fact.text += fmt::format("; gzip and zstd; Arrow is {}", arrow_file());
  else
    fact.fix = fmt::format(
        "this Arrow was built without {}: such corpora cannot be read, and Parquet rows need zstd; "
        "use the Arrow that tools/setup fetches",
        missing);
  return fact;
}

}  // namespace sheaf
