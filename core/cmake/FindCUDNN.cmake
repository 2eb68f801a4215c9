# cuDNN's headers: beside CUDA, in the system, or in Python's wheel nvidia-cudnn. The program loads the
# library when it first uses a GPU. Sets the target CUDNN::headers, CUDNN_VERSION, and CUDNN_LIBRARY_DIR if
# the library was found.
include("${CMAKE_CURRENT_LIST_DIR}/MusterFindNvidia.cmake")
muster_find_nvidia(CUDNN HEADER cudnn.h SONAME libcudnn.so.9 FOLDER cudnn)
if(CUDNN_INCLUDE_DIR)
  foreach(part MAJOR MINOR PATCHLEVEL)
    file(STRINGS "${CUDNN_INCLUDE_DIR}/cudnn_version.h" line REGEX "#define CUDNN_${part} +[0-9]+")
    string(REGEX REPLACE ".* ([0-9]+).*" "\\1" CUDNN_${part} "${line}")
  endforeach()
  set(CUDNN_VERSION "${CUDNN_MAJOR}.${CUDNN_MINOR}.${CUDNN_PATCHLEVEL}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CUDNN REQUIRED_VARS CUDNN_INCLUDE_DIR VERSION_VAR CUDNN_VERSION)
muster_add_nvidia_headers(CUDNN)
