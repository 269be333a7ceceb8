# The CUDA room: built where nvcc is found, or must be found when SHEAF_CUDA is ON. Includes go one way: base includes none
# of the others, attention and ops include base, gemm and weights include base and ops, and the files beside this one
# include all of them.
function(add_cuda_room)
  file(GLOB_RECURSE kernels CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/cuda/*.cu")
  add_library(sheaf_kernels STATIC ${kernels})
  # Kernels keep to C++17: CMake 3.25 does not know that nvcc 13 speaks C++20.
  set_target_properties(sheaf_kernels PROPERTIES CUDA_STANDARD 17)
  target_include_directories(sheaf_kernels PUBLIC "${CMAKE_SOURCE_DIR}")
  list(TRANSFORM CMAKE_CUDA_ARCHITECTURES PREPEND "sm_" OUTPUT_VARIABLE names)
  list(JOIN names " " names)
  set_source_files_properties(cuda/base/devices.cu PROPERTIES COMPILE_DEFINITIONS "SHEAF_CUDA_ARCH_TEXT=\"${names}\"")

  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/cuda/*.cc")
  add_library(sheaf_cuda STATIC ${sources})
  set_source_files_properties(cuda/base/blas.cc PROPERTIES COMPILE_DEFINITIONS
                              "SHEAF_CUDA_LIBRARIES=\"${CUDAToolkit_LIBRARY_DIR}\"")
  target_link_libraries(sheaf_cuda PUBLIC sheaf_core sheaf_kernels CUDA::cudart_static ${CMAKE_DL_LIBS})
endfunction()

if(NOT SHEAF_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    include(CudaArch)
    find_cuda_arch(CMAKE_CUDA_ARCHITECTURES)
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    add_cuda_room()
  elseif(SHEAF_CUDA STREQUAL "ON")
    message(FATAL_ERROR "SHEAF_CUDA is ON, but nvcc was not found; install the CUDA toolkit or put nvcc on the PATH")
  endif()
endif()
