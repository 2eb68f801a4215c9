# Installs the build in BUILD, then configures, builds and runs this project against what was installed.
# cmake -D BUILD=... -D SOURCE=... -D GENERATOR=... -D COMPILER=... -P run.cmake
set(prefix "${BUILD}/consumer/prefix")
set(build "${BUILD}/consumer/build")

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# What an earlier run installed must not stand in for what is missing now.
file(REMOVE_RECURSE "${prefix}")
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${prefix}"
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)

file(GLOB_RECURSE scripts "${prefix}/*.cmake")
foreach(script IN LISTS scripts)
  file(READ "${script}" text)
  string(FIND "${text}" "${SOURCE}" place)
  if(NOT place EQUAL -1)
    message(FATAL_ERROR "${script} names a path in the source tree")
  endif()
endforeach()

run("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${build}" -G "${GENERATOR}"
  "-DCMAKE_CXX_COMPILER=${COMPILER}" -DCMAKE_BUILD_TYPE=Release "-DCMAKE_PREFIX_PATH=${prefix}")
run("${CMAKE_COMMAND}" --build "${build}")
run("${build}/consumer")
