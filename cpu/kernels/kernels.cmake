# Sums are written with explicit fused multiply-adds where they are meant, so the compiler must not add its own.
target_compile_options(sheaf_cpu PRIVATE -ffp-contract=off)

# Reordering by the compiler spills the accumulators of the multiply kernel (51 instead of 71 GFLOP/s a core).
set(kernel_flags -fno-schedule-insns -fno-schedule-insns2)
set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/kernels_base.cc PROPERTIES COMPILE_OPTIONS "${kernel_flags}")
# Files of another kind of processor are not compiled.
function(kernel_file name processors flags)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "${processors}")
    set_source_files_properties(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${name}.cc PROPERTIES COMPILE_OPTIONS "${kernel_flags};${flags}")
  else()
    set_source_files_properties(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${name}.cc PROPERTIES HEADER_FILE_ONLY ON)
  endif()
endfunction()
set(arm "aarch64|arm64")
set(x86 "x86_64|AMD64")
kernel_file(int_dot ${arm} "-march=armv8.2-a+dotprod")
kernel_file(int_i8mm ${arm} "-march=armv8.2-a+i8mm")
kernel_file(kernels_avx2 ${x86} "-mavx2;-mfma")
kernel_file(kernels_avx512 ${x86} "-mavx2;-mfma;-mavx512f")
kernel_file(int_avx2 ${x86} "-mavx2")
kernel_file(int_avx_vnni ${x86} "-mavx2;-mavxvnni")
kernel_file(int_avx512_vnni ${x86} "-mavx2;-mavx512f;-mavx512vnni")
kernel_file(int_amx ${x86} "-mavx2;-mavx512f;-mamx-tile;-mamx-int8")
