# The Python package (app/python): `cmake --build build/release --target sheaf_python` puts it together in build/python, and
# PYTHONPATH=build/python imports it. The library is called by ctypes, so it needs no Python to build and serves every
# version of it. It is not part of `all`: `make wheel` and tests/python ask for it.
file(GLOB python_sources CONFIGURE_DEPENDS "app/python/*.cc")
file(GLOB python_files CONFIGURE_DEPENDS "app/python/sheaf/*.py" "app/python/sheaf/*.pyi" "app/python/sheaf/py.typed")
join_sources(python_sources)
set(python_package "${CMAKE_BINARY_DIR}/python/sheaf")
add_library(sheaf_python MODULE EXCLUDE_FROM_ALL ${python_sources})
target_link_libraries(sheaf_python PRIVATE sheaf_jobs)
# Whoever loads the library sees the functions of module.cc and nothing else of it.
set_target_properties(sheaf_python PROPERTIES PREFIX "" OUTPUT_NAME _sheaf LIBRARY_OUTPUT_DIRECTORY "${python_package}"
                      CXX_VISIBILITY_PRESET hidden)
target_compile_options(sheaf_python PRIVATE $<$<CONFIG:Release>:-O2>)
target_link_options(sheaf_python PRIVATE -Wl,--exclude-libs,ALL)
add_custom_command(TARGET sheaf_python POST_BUILD
                   COMMAND "${CMAKE_COMMAND}" -E copy_if_different ${python_files} "${python_package}")
