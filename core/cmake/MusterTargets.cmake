# Flags for our own code; not exported to users.
add_library(muster_warnings INTERFACE)
# GCC 13 and newer report a dangling reference if a function with temporary arguments returns a reference:
# Batch::ensure(tensors, "x", {3}) returns one to an element of `tensors`. Clang warns about `omp simd` loops that it
# does not vectorise for one of the instruction sets. nvcc generates host code that violates -Wpedantic.
set(newer_gcc "$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,13>>")
target_compile_options(muster_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,${newer_gcc}>:-Wno-dangling-reference>
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-pass-failed>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wshadow,-Wnon-virtual-dtor>)
option(MUSTER_WERROR "Treat warnings as errors" OFF)
if(MUSTER_WERROR)
  target_compile_options(muster_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Werror> $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
endif()

# muster_optional(<name>): begins the folder of an optional module, and leaves it if MUSTER_OPTIONAL is OFF.
macro(muster_optional name)
  if(NOT MUSTER_OPTIONAL)
    message(STATUS "muster::${name} is left out: MUSTER_OPTIONAL is OFF")
    return()
  endif()
endmacro()

# muster_module(<name>): adds the target muster_<name>, alias muster::<name>, static unless BUILD_SHARED_LIBS. Its
# folders add their own sources. Before 1.0 a minor version may change the interface, so the SONAME includes the minor
# version.
function(muster_module name)
  add_library(muster_${name})
  add_library(muster::${name} ALIAS muster_${name})
  set_target_properties(muster_${name} PROPERTIES EXPORT_NAME ${name} DEFINE_SYMBOL ""
    VERSION "${PROJECT_VERSION}" SOVERSION "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
  target_compile_features(muster_${name} PUBLIC cxx_std_20)
  target_include_directories(muster_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(muster_${name} PRIVATE $<BUILD_INTERFACE:muster_warnings>)
endfunction()
