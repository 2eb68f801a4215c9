# Copies the project within/ and the library's sources to a path with blanks and configures them there. If WHAT is
# given (a target), builds it, and runs it if it is the program. cmake -D BUILD=... -D SOURCE=... -D GENERATOR=... -D COMPILER=...
# [-D WHAT=...] -P within.cmake
set(folder "${BUILD}/consumer/a path with blanks")
set(build "${folder}/build of it")
file(COPY "${CMAKE_CURRENT_LIST_DIR}/within/CMakeLists.txt" DESTINATION "${folder}")
foreach(part IN ITEMS CMakeLists.txt core datasets parallel)
  file(COPY "${SOURCE}/${part}" DESTINATION "${folder}/its libraries/muster")
endforeach()

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()
run("${CMAKE_COMMAND}" -S "${folder}" -B "${build}" -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}"
  -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O1 "-DMAIN=${CMAKE_CURRENT_LIST_DIR}/main.cpp")

# Programs of the user's project find the headers in the build folder.
if(NOT EXISTS "${build}/its libraries/muster/include/muster/core/nn/multi_layer_network.h")
  message(FATAL_ERROR "the build folder has no headers of muster")
endif()
if(WHAT)
  run("${CMAKE_COMMAND}" --build "${build}" --target "${WHAT}")
endif()
if("${WHAT}" STREQUAL program)
  run("${CMAKE_COMMAND}" -E env --unset=MUSTER_DATA_DIR "${build}/program")
endif()
