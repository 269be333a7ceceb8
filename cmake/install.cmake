# cmake --install BUILD --prefix P: the program; the libraries that it needs besides the C and C++ libraries, with their
# licences; its man page and completions; and under share/sheaf the jobs, the sample corpora and the default model.
# cmake/package.cmake packs the same tree.
include(GNUInstallDirs)
set(share "${CMAKE_INSTALL_DATADIR}/sheaf")
set(doc "${CMAKE_INSTALL_DATADIR}/doc/sheaf")
set_target_properties(sheaf PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/sheaf")
install(TARGETS sheaf RUNTIME_DEPENDENCY_SET libraries RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(RUNTIME_DEPENDENCY_SET libraries
        PRE_EXCLUDE_REGEXES "^(ld-linux.*|libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\\+\\+|libcuda)\\.so"
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/sheaf")

install(CODE "
  foreach(page \"man;sheaf.1\" \"completion bash;sheaf.bash\" \"completion zsh;_sheaf\")
    list(GET page 0 words)
    list(GET page 1 file)
    separate_arguments(words)
    execute_process(COMMAND \"$<TARGET_FILE:sheaf>\" \${words} OUTPUT_FILE \"${CMAKE_BINARY_DIR}/\${file}\" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()")
install(FILES "${CMAKE_BINARY_DIR}/sheaf.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
install(FILES "${CMAKE_BINARY_DIR}/sheaf.bash" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" RENAME sheaf)
install(FILES "${CMAKE_BINARY_DIR}/_sheaf" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")

# In the source tree the model lies under build/. Installed jobs write to the folder they are started in; their own is
# closed to most users.
install(CODE "
  file(GLOB_RECURSE jobs RELATIVE \"${CMAKE_SOURCE_DIR}/configs\" \"${CMAKE_SOURCE_DIR}/configs/*.yaml\")
  foreach(job \${jobs})
    file(READ \"${CMAKE_SOURCE_DIR}/configs/\${job}\" text)
    string(REPLACE \"/build/models/\" \"/models/\" text \"\${text}\")
    string(REGEX REPLACE \"path: [./]+/out/\" \"path: \\$PWD/out/\" text \"\${text}\")
    file(WRITE \"${CMAKE_BINARY_DIR}/installed/configs/\${job}\" \"\${text}\")
  endforeach()")
install(DIRECTORY "${CMAKE_BINARY_DIR}/installed/configs" DESTINATION "${share}")
install(DIRECTORY configs datasets DESTINATION "${share}" PATTERN "*.yaml" EXCLUDE PATTERN sources EXCLUDE)
install(FILES build/models/smollm2.gguf DESTINATION "${share}/models" OPTIONAL)
install(PROGRAMS tools/get-model DESTINATION "${share}")
install(CODE "
  if(NOT EXISTS \"${CMAKE_SOURCE_DIR}/build/models/smollm2.gguf\")
    message(WARNING \"the default model is not installed, because tools/setup did not fetch it; jobs must name a model\")
  endif()")

install(FILES LICENSE README.md CHANGELOG.md DESTINATION "${doc}")
install(DIRECTORY docs DESTINATION "${doc}")
file(GLOB arrow_licences "${CMAKE_SOURCE_DIR}/build/deps/pyarrow/*.dist-info/licenses/*")
install(FILES ${arrow_licences} DESTINATION "${doc}/licences/arrow")
install(FILES build/deps/nvidia-cutlass/nvidia_cutlass-4.2.0.0.dist-info/licenses/LICENSE.txt
        DESTINATION "${doc}/licences/cutlass" OPTIONAL)
install(FILES build/models/smollm2.LICENSE DESTINATION "${doc}/licences/smollm2" RENAME LICENSE OPTIONAL)
foreach(package libyaml-cpp-dev libsentencepiece-dev libfmt-dev libssl-dev nlohmann-json3-dev libcli11-dev)
  install(FILES "/usr/share/doc/${package}/copyright" DESTINATION "${doc}/licences" RENAME ${package} OPTIONAL)
endforeach()
