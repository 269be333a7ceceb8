# Arrow and Parquet for C++ from a pyarrow wheel: the one tools/setup unpacked under build/deps, else the one python3 has.
# Defines the imported targets PyArrow::arrow and PyArrow::parquet.
set(_wheel "${CMAKE_SOURCE_DIR}/build/deps/pyarrow/pyarrow")
if(NOT EXISTS "${_wheel}/include/arrow/api.h")
  execute_process(COMMAND python3 -c "import pyarrow,os;print(os.path.dirname(pyarrow.__file__),end='')"
                  OUTPUT_VARIABLE _wheel ERROR_QUIET RESULT_VARIABLE _rc)
  if(NOT _rc EQUAL 0)
    set(_wheel "")
  endif()
endif()
file(GLOB PyArrow_ARROW "${_wheel}/libarrow.so.*")
file(GLOB PyArrow_PARQUET "${_wheel}/libparquet.so.*")
file(GLOB PyArrow_COMPUTE "${_wheel}/libarrow_compute.so.*")
set(PyArrow_INCLUDE_DIR "${_wheel}/include")
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(PyArrow REQUIRED_VARS PyArrow_ARROW PyArrow_PARQUET PyArrow_INCLUDE_DIR
                                  REASON_FAILURE_MESSAGE "run tools/setup, which unpacks the pyarrow wheel under build/deps")
foreach(lib arrow parquet)
  string(TOUPPER ${lib} _up)
  if(PyArrow_FOUND AND NOT TARGET PyArrow::${lib})
    add_library(PyArrow::${lib} SHARED IMPORTED)
    set_target_properties(PyArrow::${lib} PROPERTIES IMPORTED_LOCATION "${PyArrow_${_up}}"
                          IMPORTED_NO_SONAME FALSE INTERFACE_INCLUDE_DIRECTORIES "${PyArrow_INCLUDE_DIR}"
                          INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${PyArrow_INCLUDE_DIR}")
  endif()
endforeach()
