#include <CLI/Version.hpp>
#include <arrow/config.h>
#include <arrow/util/compression.h>
#include <fmt/format.h>
#include <openssl/crypto.h>

#include "io/machine/machine.h"
#ifdef SHEAF_WITH_CUDA
#include "core/base/error.h"
#include "cuda/base/blas.h"
#include "cuda/base/devices.h"
#endif

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

#ifdef SHEAF_WITH_CUDA
/// Without a GPU cuBLAS is not needed, and it is no trouble that it cannot be opened.
void add_cublas(Versions& versions, std::string& trouble) {
  try {
    int part[3] = {};
    const cuda::Blas& blas = cuda::cublas();
    blas.property(MAJOR_VERSION, &part[0]);
    blas.property(MINOR_VERSION, &part[1]);
    blas.property(PATCH_LEVEL, &part[2]);
    versions.emplace_back("cuBLAS", dotted(part[0], part[1], part[2]));
  } catch (const Error& error) {
    if (!cuda_devices().empty()) trouble = error.what();
  }
}
#endif

}  // namespace

MachineFact examine_libraries() {
  MachineFact fact{"libraries", "", "", {}};
  Versions versions = library_versions();
#ifdef SHEAF_WITH_CUDA
  add_cublas(versions, fact.fix);
#endif
  for (const auto& [name, version] : versions) {
    fact.text += fmt::format("{}{} {}", fact.text.empty() ? "" : ", ", name, version);
    fact.details[name] = version;
  }
  // Arrow can be built without what corpora and Parquet rows are packed with.
  std::string missing;
  for (const auto& [name, codec] :
       {std::pair{"gzip", arrow::Compression::GZIP}, {"zstd", arrow::Compression::ZSTD}}) {
    const bool there = arrow::util::Codec::IsAvailable(codec);
    fact.details[name] = there;
    if (!there) missing += fmt::format("{}{}", missing.empty() ? "" : " and ", name);
  }
  if (missing.empty())
    fact.text += "; gzip and zstd";
  else
    fact.fix = fmt::format(
        "this Arrow was built without {}: such corpora cannot be read, and Parquet rows need zstd; "
        "use the Arrow that tools/setup fetches",
        missing);
  return fact;
}

}  // namespace sheaf
