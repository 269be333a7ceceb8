# cmake --install BUILD --prefix P: the program, the Arrow of the wheel that it was built with, and what the program says
# of itself: man page and completions; and what `sheaf estimate` knows of machines, which it looks for beside bin/.
include(GNUInstallDirs)
set_target_properties(sheaf PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/sheaf" INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS sheaf RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")

get_target_property(arrow_kind PyArrow::arrow TYPE)
if(arrow_kind STREQUAL "SHARED_LIBRARY")
  install(IMPORTED_RUNTIME_ARTIFACTS PyArrow::arrow PyArrow::parquet
          LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/sheaf")
endif()

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
install(FILES configs/hardware.yaml DESTINATION "${CMAKE_INSTALL_DATADIR}/sheaf")
install(DIRECTORY configs/devices DESTINATION "${CMAKE_INSTALL_DATADIR}/sheaf" FILES_MATCHING PATTERN "*.json")
