# Quick builds of muster itself by GCC or Clang, in two ways. Headers of the standard library, fmt and doctest that most
# files include are precompiled; our own are not, so that a change of one compiles only the files that include it. And
# the files of a folder are compiled ten at a time, so that our headers are read and templates instantiated once: names
# in anonymous namespaces must differ within a folder. Both halve a build from nothing. Builds in which a warning is an
# error do neither, and so check that each file includes what it uses. CMAKE_DISABLE_PRECOMPILE_HEADERS=ON and
# CMAKE_UNITY_BUILD=OFF, of CMake, also turn them off; with ccache set the former, or
# CCACHE_SLOPPINESS=pch_defines,time_macros.
if(NOT PROJECT_IS_TOP_LEVEL OR MUSTER_WERROR OR NOT CMAKE_CXX_COMPILER_ID MATCHES "^(GNU|Clang)$")
  return()
endif()

set(precompiled_headers
  <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable> <cstdint> <cstdlib> <cstring> <exception>
  <filesystem> <functional> <limits> <map> <memory> <mutex> <optional> <set> <span> <string> <string_view>
  <system_error> <thread> <utility> <variant> <vector> <fmt/format.h> <fmt/ranges.h>)

# Precompiled headers can be read only with the compiler options that they were made with: libraries, programs and tests
# have their own.
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/precompiled.cpp" CONTENT "")
foreach(kind library program test)
  if(kind STREQUAL test AND NOT MUSTER_BUILD_TESTS)
    continue()
  endif()
  set(host muster_precompiled_${kind})
  add_library(${host} OBJECT EXCLUDE_FROM_ALL "${PROJECT_BINARY_DIR}/precompiled.cpp")
  target_link_libraries(${host} PRIVATE fmt::fmt muster_warnings)
  target_precompile_headers(${host} PRIVATE ${precompiled_headers})
  if(NOT kind STREQUAL library)
    set_target_properties(${host} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${host} PRIVATE ${CMAKE_CXX_COMPILE_OPTIONS_PIE})
  endif()
  if(kind STREQUAL test)
    find_package(doctest REQUIRED)
    target_link_libraries(${host} PRIVATE doctest::doctest muster_test_options)
    target_precompile_headers(${host} PRIVATE <fstream> <random> <sstream> <stdexcept> <doctest/doctest.h>)
  endif()
endforeach()

# Sources with compiler options of their own read the headers themselves: GCC 12 even crashes if the level of
# optimisation differs.
function(muster_skip_precompiled target)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    get_source_file_property(options "${source}" TARGET_DIRECTORY ${target} COMPILE_OPTIONS)
    if(options)
      set_source_files_properties("${source}" TARGET_DIRECTORY ${target} PROPERTIES SKIP_PRECOMPILE_HEADERS TRUE)
    endif()
  endforeach()
endfunction()

# Lets the files of each folder be compiled a few at a time, so that their headers are read and their templates
# instantiated once. Files with compiler options of their own stay alone, and those of the backends, whose speed depends
# on what the compiler inlines; each fuzzer is a program with the same names.
set(muster_files_at_once 10)
function(muster_compile_together target)
  get_target_property(sources ${target} SOURCES)
  get_target_property(base ${target} SOURCE_DIR)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${base}" NORMALIZE)
    cmake_path(GET source PARENT_PATH folder)
    if(folder MATCHES "^${PROJECT_SOURCE_DIR}/(core/backend|tests/fuzz)")
      continue()
    endif()
    string(MD5 folder "${folder}")
    math(EXPR files_of_${folder} "${files_of_${folder}} + 1")
    math(EXPR part "(${files_of_${folder}} - 1) / ${muster_files_at_once}")
    set_source_files_properties("${source}" TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP "${folder}_${part}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # GCC warns of members of a local type, except in the file that is compiled.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endfunction()

# Lets all targets of a folder, and of those in it, use precompiled headers.
function(muster_use_precompiled folder)
  get_directory_property(targets DIRECTORY "${folder}" BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    get_target_property(libraries ${target} LINK_LIBRARIES)
    get_target_property(test ${target} MUSTER_TEST)
    # libtorch's definitions and OpenMP change what headers contain.
    if(target MATCHES "^muster_precompiled_" OR type STREQUAL "INTERFACE_LIBRARY" OR
        NOT libraries MATCHES "muster_warnings" OR libraries MATCHES "torch")
      continue()
    elseif(target STREQUAL muster_core)
      target_precompile_headers(${target} PRIVATE ${precompiled_headers})
      muster_skip_precompiled(${target})
    elseif(libraries MATCHES "OpenMP")
      continue()
    elseif(test)
      target_precompile_headers(${target} REUSE_FROM muster_precompiled_test)
    elseif(type STREQUAL "EXECUTABLE")
      target_precompile_headers(${target} REUSE_FROM muster_precompiled_program)
    else()
      target_precompile_headers(${target} REUSE_FROM muster_precompiled_library)
    endif()
    if(CMAKE_UNITY_BUILD OR NOT DEFINED CMAKE_UNITY_BUILD)
      muster_compile_together(${target})
    endif()
    # GCC 12 warns falsely of the code of std::string if that is precompiled.
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-array-bounds -Wno-stringop-overread>)
  endforeach()
  get_directory_property(folders DIRECTORY "${folder}" SUBDIRECTORIES)
  foreach(subfolder IN LISTS folders)
    muster_use_precompiled("${subfolder}")
  endforeach()
endfunction()
muster_use_precompiled("${PROJECT_SOURCE_DIR}")
