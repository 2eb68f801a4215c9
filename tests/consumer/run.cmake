# Installs the build in BUILD, then configures, builds and runs this project against the installed package. cmake -D
# BUILD=... -D SOURCE=... -D GENERATOR=... -D COMPILER=... -P run.cmake
set(prefix "${BUILD}/consumer/prefix")
set(build "${BUILD}/consumer/build")

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# Files of an earlier installation must not hide missing ones.
file(REMOVE_RECURSE "${prefix}")
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${prefix}"
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)

# The installed program, as README's "Train without C++" begins.
if(EXISTS "${BUILD}/examples/muster")
  run("${prefix}/bin/muster" --version)
  execute_process(COMMAND "${prefix}/bin/muster" example OUTPUT_FILE "${BUILD}/consumer/run.json"
    COMMAND_ERROR_IS_FATAL ANY)
  run("${prefix}/bin/muster" plan "${BUILD}/consumer/run.json" --set training.workers=2)
  run("${prefix}/bin/muster" plan "${prefix}/share/muster/compare/rules.json")
endif()

# Absolute paths alone: of a tree in /muster, include/muster is none.
string(REGEX REPLACE "([][+.*()^])" "\\\\\\1" source "${SOURCE}")
set(source "(^|[^A-Za-z0-9_.}/-]|-[IL])${source}(/|[^A-Za-z0-9_.-]|$)")
file(GLOB_RECURSE scripts "${prefix}/*.cmake")
foreach(script IN LISTS scripts)
  file(READ "${script}" text)
  if(text MATCHES "${source}")
    message(FATAL_ERROR "${script} names a path in the source tree")
  endif()
endforeach()

run("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${build}" -G "${GENERATOR}"
  "-DCMAKE_CXX_COMPILER=${COMPILER}" -DCMAKE_BUILD_TYPE=Release "-DCMAKE_PREFIX_PATH=${prefix}")
run("${CMAKE_COMMAND}" --build "${build}")
run("${build}/consumer")

# Components: core does not need the data sets' dependencies; each built component is found on its own; the message
# names a missing one.
function(configure_components folder want)
  execute_process(COMMAND "${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}/components" -B "${BUILD}/consumer/${folder}"
      -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}" -DCMAKE_BUILD_TYPE=Release "-DCMAKE_PREFIX_PATH=${prefix}"
      "-DWANT=${want}" ${ARGN}
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message(STATUS "components ${want}: ${result}")
  set(result "${result}" PARENT_SCOPE)
  set(output "${output}" PARENT_SCOPE)
  if(NOT result EQUAL 0 AND NOT want MATCHES absent)
    message(FATAL_ERROR "the components ${want}: ${output}")
  endif()
endfunction()
configure_components(core core -DCMAKE_DISABLE_FIND_PACKAGE_CURL=ON -DCMAKE_DISABLE_FIND_PACKAGE_OpenSSL=ON)
run("${CMAKE_COMMAND}" --build "${BUILD}/consumer/core")
run("${BUILD}/consumer/core/components")
file(GLOB found "${prefix}/lib*/cmake/muster/muster_*Targets.cmake" "${prefix}/lib*/*/cmake/muster/muster_*Targets.cmake")
foreach(file IN LISTS found)
  string(REGEX REPLACE ".*/muster_([a-z0-9]+)Targets.cmake" "\\1" component "${file}")
  configure_components("${component}-alone" "${component}")
endforeach()
configure_components(run run -DPROGRAM=run.cpp)
run("${CMAKE_COMMAND}" --build "${BUILD}/consumer/run")
run("${CMAKE_COMMAND}" -E chdir "${BUILD}/consumer/run" ./components)
configure_components(absent "core;absent")
if(result EQUAL 0 OR NOT output MATCHES "this installation has no component absent")
  message(FATAL_ERROR "a component that is not there: ${output}")
endif()

# The CMake blocks of the pages: a complete one builds its page's program, others are added to a project.
file(GLOB blocks "${BUILD}/tests/docs/blocks/*.cmake")
foreach(block IN LISTS blocks)
  get_filename_component(stem "${block}" NAME_WE)
  string(REGEX REPLACE "_[0-9]+$" "" page "${stem}")
  set(folder "${BUILD}/consumer/pages/${stem}")
  file(READ "${block}" text)
  if(text MATCHES "add_executable\\([a-z]+ ([a-z.]+)\\)")
    configure_file("${BUILD}/tests/docs/blocks/${page}_program.cpp" "${folder}/${CMAKE_MATCH_1}" COPYONLY)
  else()
    string(PREPEND text "cmake_minimum_required(VERSION 3.25)\nproject(page LANGUAGES CXX)\n"
      "add_executable(program \"${CMAKE_CURRENT_LIST_DIR}/components/main.cpp\")\n")
  endif()
  file(CONFIGURE OUTPUT "${folder}/CMakeLists.txt" CONTENT "${text}" @ONLY)
  message(STATUS "the CMake block ${stem}")
  run("${CMAKE_COMMAND}" -S "${folder}" -B "${folder}/build" -G "${GENERATOR}"
    "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_PREFIX_PATH=${prefix}")
  run("${CMAKE_COMMAND}" --build "${folder}/build")
endforeach()

# The installed library through pkg-config, if available.
find_program(pkg_config pkg-config)
file(GLOB_RECURSE pc "${prefix}/*/muster.pc")
if(pkg_config)
  get_filename_component(folder "${pc}" DIRECTORY)
  execute_process(COMMAND "${CMAKE_COMMAND}" -E env "PKG_CONFIG_PATH=${folder}" "${pkg_config}" --cflags --libs muster
    OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  run("${COMPILER}" "${CMAKE_CURRENT_LIST_DIR}/components/main.cpp" -o "${BUILD}/consumer/by-pkg-config" ${flags})
  get_filename_component(libraries "${folder}" DIRECTORY)
  run("${CMAKE_COMMAND}" -E env "LD_LIBRARY_PATH=${libraries}" "${BUILD}/consumer/by-pkg-config")
else()
  message(STATUS "there is no pkg-config: muster.pc was not tried")
endif()
