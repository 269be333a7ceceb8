#include "io/machine/backend_kinds.h"

namespace sheaf {

BackendKind cuda_kind() {
  return missing_cuda_kind();
}

std::string cuda_part_text() {
  return "no CUDA (built without nvcc): jobs run on the CPU";
}

void add_cuda_libraries(std::vector<std::pair<std::string, std::string>>& /*versions*/,
                        std::string& /*trouble*/) {}

}  // namespace sheaf
