#pragma once
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

namespace sheaf::test {

/// What a machine may lack, so that a test cannot run on it.
enum class Lacking {
  // A machine that builds sheaf may do without these.
  gpu,
  hopper,                ///< a GPU of capability 9.0
  avx512,                ///< a processor with AVX2 and AVX-512
  tool,                  ///< a program that only reads what sheaf writes
  plain_memory,          ///< memory as it is without the address sanitizer
  shared_folder,         ///< ../shared: real datasets and tokenizers, which are not part of the repository
  terminal_file_system,  ///< /dev/pts, which a chroot may lack
  // tools/setup and Linux provide these. A test without them fails, unless SHEAF_MAY_SKIP=1.
  shared_file,  ///< a file of ../shared, where that is
  default_model,
  terminals,    ///< pseudo-terminals
  full_device,  ///< /dev/full
  paging_in,    ///< MADV_POPULATE_READ, from Linux 5.14 on
};

inline bool may_skip(Lacking lacking) {
  const char* const all = std::getenv("SHEAF_MAY_SKIP");
  return lacking < Lacking::shared_file || (all && std::string_view(all) == "1");
}

/// A file of ../shared is missing alone, or with its folder.
inline Lacking lacking_shared() {
  return std::filesystem::exists("../shared") ? Lacking::shared_file : Lacking::shared_folder;
}

constexpr const char* kDefaultModel = "build/models/smollm2.gguf";

inline bool has_default_model() {
  return std::filesystem::exists(kDefaultModel);
}

#ifdef __SANITIZE_ADDRESS__
constexpr bool kAddressSanitizer = true;
#else
constexpr bool kAddressSanitizer = false;
#endif

}  // namespace sheaf::test

/// Skips the test with its reason where something is lacking that a machine may lack; fails it where the
/// machine should have it. A macro, because it returns from the test.
#define SKIP_UNLESS(there, lacking, why)                                                      \
  do {                                                                                        \
    if (!(there)) {                                                                           \
      if (!::sheaf::test::may_skip(lacking))                                                  \
        FAIL() << (why) << "; this machine should have it (SHEAF_MAY_SKIP=1 skips the test)"; \
      GTEST_SKIP() << (why);                                                                  \
    }                                                                                         \
  } while (false)

#define NEED_MODEL()                                                                     \
  SKIP_UNLESS(::sheaf::test::has_default_model(), ::sheaf::test::Lacking::default_model, \
              std::string(::sheaf::test::kDefaultModel) + " is missing; tools/setup fetches it")

/// A file of ../shared.
#define NEED_SHARED(path)                                                     \
  SKIP_UNLESS(std::filesystem::exists(path), ::sheaf::test::lacking_shared(), \
              std::string(path) + " is missing")
