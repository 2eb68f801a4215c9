# NCCL's headers: beside CUDA, in the system, or in Python's wheel nvidia-nccl. A program that uses several
# GPUs loads the library. Sets the target NCCL::headers, NCCL_VERSION, and NCCL_LIBRARY_DIR if the library was
# found.
include("${CMAKE_CURRENT_LIST_DIR}/MusterFindNvidia.cmake")
muster_find_nvidia(NCCL HEADER nccl.h SONAME libnccl.so.2 FOLDER nccl)
if(NCCL_INCLUDE_DIR)
  foreach(part MAJOR MINOR PATCH)
    file(STRINGS "${NCCL_INCLUDE_DIR}/nccl.h" line REGEX "#define NCCL_${part} +[0-9]+")
    string(REGEX REPLACE ".* ([0-9]+).*" "\\1" NCCL_${part} "${line}")
  endforeach()
  set(NCCL_VERSION "${NCCL_MAJOR}.${NCCL_MINOR}.${NCCL_PATCH}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL REQUIRED_VARS NCCL_INCLUDE_DIR VERSION_VAR NCCL_VERSION)
muster_add_nvidia_headers(NCCL)
