#include "io/machine/version.h"

#include <fmt/format.h>

#ifdef SHEAF_WITH_CUDA
#include "cuda/base/devices.h"
#endif

namespace sheaf {

std::string version_text() {
#ifdef SHEAF_WITH_CUDA
  const std::string cuda = cuda_build_text();
#else
  const std::string cuda = "no CUDA (built without nvcc): jobs run on the CPU";
#endif
  return fmt::format("sheaf {}\n{}", SHEAF_VERSION, cuda);
}

}  // namespace sheaf
