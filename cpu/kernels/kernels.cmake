# Sums are written with explicit fused multiply-adds where they are meant, so the compiler must not add its own.
target_compile_options(sheaf_cpu PRIVATE -ffp-contract=off)

# Reordering by the compiler spills the accumulators of the multiply kernel (51 instead of 71 GFLOP/s a core).
set(kernel_flags -fno-schedule-insns -fno-schedule-insns2)
set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/kernels_base.cc PROPERTIES COMPILE_OPTIONS "${kernel_flags}")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/int_dot.cc PROPERTIES COMPILE_OPTIONS "${kernel_flags};-march=armv8.2-a+dotprod")
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/int_i8mm.cc PROPERTIES COMPILE_OPTIONS "${kernel_flags};-march=armv8.2-a+i8mm")
else()
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/int_dot.cc ${CMAKE_CURRENT_LIST_DIR}/int_i8mm.cc PROPERTIES HEADER_FILE_ONLY ON)
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/kernels_avx2.cc PROPERTIES COMPILE_OPTIONS "${kernel_flags};-mavx2;-mfma")
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/kernels_avx512.cc PROPERTIES COMPILE_OPTIONS "${kernel_flags};-mavx2;-mfma;-mavx512f")
else()
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/kernels_avx2.cc ${CMAKE_CURRENT_LIST_DIR}/kernels_avx512.cc PROPERTIES HEADER_FILE_ONLY ON)
endif()
