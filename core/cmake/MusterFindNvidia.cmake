# muster_find_nvidia(<NAME> HEADER <header> SONAME <library> FOLDER <wheel's folder>): sets <NAME>_INCLUDE_DIR
# and <NAME>_LIBRARY_DIR. Searches beside nvcc, in the system, then in the folders nvidia/<FOLDER> of Python's
# packages.
function(muster_find_nvidia name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "HEADER;SONAME;FOLDER" "")
  cmake_path(GET CMAKE_CUDA_COMPILER PARENT_PATH bin)
  set(roots "${bin}/..")
  file(GLOB wheels
    "/usr/lib/python3*/*-packages/nvidia/${arg_FOLDER}" "/usr/local/lib/python3*/*-packages/nvidia/${arg_FOLDER}"
    "$ENV{HOME}/.local/lib/python3*/site-packages/nvidia/${arg_FOLDER}"
    "$ENV{VIRTUAL_ENV}/lib/python3*/site-packages/nvidia/${arg_FOLDER}"
    "$ENV{CONDA_PREFIX}/lib/python3*/site-packages/nvidia/${arg_FOLDER}")
  find_path(${name}_INCLUDE_DIR ${arg_HEADER} HINTS ${roots} PATHS ${wheels} PATH_SUFFIXES include)
  find_path(${name}_LIBRARY_DIR ${arg_SONAME} HINTS ${roots} "${${name}_INCLUDE_DIR}/.." PATHS ${wheels}
    PATH_SUFFIXES lib lib64 lib/${CMAKE_LIBRARY_ARCHITECTURE})
  mark_as_advanced(${name}_INCLUDE_DIR ${name}_LIBRARY_DIR)
endfunction()

# The target <NAME>::headers, if they were found.
function(muster_add_nvidia_headers name)
  if(${name}_FOUND AND NOT TARGET ${name}::headers)
    add_library(${name}::headers INTERFACE IMPORTED)
    target_include_directories(${name}::headers INTERFACE "${${name}_INCLUDE_DIR}")
  endif()
endfunction()
