#pragma once
#include <cublas_v2.h>

namespace sheaf::cuda {

/// cuBLAS, opened when it is first used: opening it takes longer than many a short command.
struct Blas {
  decltype(&cublasCreate) create;
  decltype(&cublasDestroy) destroy;
  decltype(&cublasSetStream) set_stream;
  decltype(&cublasSetWorkspace) set_workspace;
  decltype(&cublasSetMathMode) set_math_mode;
  cublasStatus_t (*gemm)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*,
                         const void*, cudaDataType, int, const void*, cudaDataType, int, const void*, void*,
                         cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t);  // cublasGemmEx
  decltype(&cublasGetStatusString) status_text;
  decltype(&cublasGetProperty) property;
};

/// Refuses with what to install where it cannot be opened.
const Blas& cublas();

}  // namespace sheaf::cuda
