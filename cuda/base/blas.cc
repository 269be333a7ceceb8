#include "cuda/base/blas.h"

#include <dlfcn.h>

#include "core/base/error.h"

#define TEXT_OF(name) #name
#define SYMBOL(name) TEXT_OF(name)  // cublasCreate is a macro for cublasCreate_v2

namespace sheaf::cuda {
namespace {

void* open_library() {
  const std::string name = fmt::format("libcublas.so.{}", CUBLAS_VERSION / 10000);
  // By the system's own search first, then where it was when this program was built.
  for (const std::string& path : {name, std::string(SHEAF_CUDA_LIBRARIES "/") + name})
    if (void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL)) return library;
  const std::string trouble = dlerror();
  refuse(
      "cuBLAS cannot be opened ({}); install the CUDA {} libraries or add their folder to LD_LIBRARY_PATH, "
      "or "
      "set engine.device: cpu",
      trouble, CUBLAS_VERSION / 10000);
}

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (!function) refuse("cuBLAS has no {}; install the version that this program was built with", name);
}

Blas open_blas() {
  void* library = open_library();
  Blas blas{};
  find(library, SYMBOL(cublasCreate), blas.create);
  find(library, SYMBOL(cublasDestroy), blas.destroy);
  find(library, SYMBOL(cublasSetStream), blas.set_stream);
  find(library, SYMBOL(cublasSetWorkspace), blas.set_workspace);
  find(library, SYMBOL(cublasSetMathMode), blas.set_math_mode);
  find(library, SYMBOL(cublasGemmEx), blas.gemm);
  find(library, SYMBOL(cublasGetStatusString), blas.status_text);
  find(library, SYMBOL(cublasGetProperty), blas.property);
  return blas;
}

}  // namespace

const Blas& cublas() {
  static const Blas blas = open_blas();
  return blas;
}

}  // namespace sheaf::cuda
