# libtorch, from a distribution's package, PyTorch's archive, or the Python package torch: the target libtorch::libtorch
# and Torch_VERSION. Found by its files, because its own configuration ends CMake if PyTorch was built with CUDA and there
# is no toolkit or no GPU here, and changes this build's flags for CUDA. CMAKE_PREFIX_PATH may be what it is for that
# configuration: torch.utils.cmake_prefix_path, or the archive's folder.
set(torch_roots ${CMAKE_PREFIX_PATH} "${Torch_DIR}" $ENV{CMAKE_PREFIX_PATH})
list(TRANSFORM torch_roots REPLACE "/share/cmake(/Torch)?/?$" "")
find_path(TORCH_INCLUDE_DIR torch/csrc/api/include/torch/torch.h HINTS ${torch_roots} PATH_SUFFIXES include)
foreach(library torch torch_cpu c10)
  string(TOUPPER "${library}_LIBRARY" variable)
  find_library(${variable} ${library} HINTS ${torch_roots} PATH_SUFFIXES lib)
endforeach()
set(torch_needs TORCH_LIBRARY TORCH_CPU_LIBRARY C10_LIBRARY TORCH_INCLUDE_DIR)
mark_as_advanced(${torch_needs})

set(Torch_VERSION "")
set(torch_problem "")
foreach(file torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
  if(EXISTS "${TORCH_INCLUDE_DIR}/${file}" AND NOT Torch_VERSION)
    file(STRINGS "${TORCH_INCLUDE_DIR}/${file}" numbers REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
    list(TRANSFORM numbers REPLACE ".* " "")
    list(JOIN numbers "." Torch_VERSION)
  endif()
endforeach()
# A library built for the old strings of the C++ library cannot be linked; its own configuration says so.
get_filename_component(torch_root "${TORCH_LIBRARY}" DIRECTORY)
if(EXISTS "${torch_root}/../share/cmake/Torch/TorchConfig.cmake")
  file(STRINGS "${torch_root}/../share/cmake/Torch/TorchConfig.cmake" old REGEX "_GLIBCXX_USE_CXX11_ABI=0")
  if(old)
    set(torch_problem "${TORCH_LIBRARY} is built for the old ABI of the C++ library (PyTorch 2.6 and newer are not)")
    set(TORCH_LIBRARY "TORCH_LIBRARY-NOTFOUND")
  endif()
endif()
# Headers of a build with glog (Debian's) call it.
set(torch_glog "")
if(EXISTS "${TORCH_INCLUDE_DIR}/c10/macros/cmake_macros.h")
  file(STRINGS "${TORCH_INCLUDE_DIR}/c10/macros/cmake_macros.h" uses REGEX "define C10_USE_GLOG")
  if(uses)
    find_library(GLOG_LIBRARY glog)
    mark_as_advanced(GLOG_LIBRARY)
    list(APPEND torch_needs GLOG_LIBRARY)
    set(torch_glog "${GLOG_LIBRARY}")
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Torch REQUIRED_VARS ${torch_needs} VERSION_VAR Torch_VERSION
  REASON_FAILURE_MESSAGE "${torch_problem}")
if(Torch_FOUND AND NOT TARGET libtorch::libtorch)
  add_library(libtorch::libtorch INTERFACE IMPORTED GLOBAL)
  target_include_directories(libtorch::libtorch INTERFACE
    "${TORCH_INCLUDE_DIR}" "${TORCH_INCLUDE_DIR}/torch/csrc/api/include")
  # PyTorch's folder has headers of a newer fmt, which hide the system's, but not their library.
  if(EXISTS "${TORCH_INCLUDE_DIR}/fmt/format.h" AND NOT TORCH_INCLUDE_DIR IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
    target_compile_definitions(libtorch::libtorch INTERFACE FMT_HEADER_ONLY=1)
  endif()
  # libtorch.so has no symbols of its own: it loads the library for GPUs, where there is one.
  target_link_libraries(libtorch::libtorch INTERFACE
    -Wl,--push-state,--no-as-needed "${TORCH_LIBRARY}" -Wl,--pop-state
    "${TORCH_CPU_LIBRARY}" "${C10_LIBRARY}" ${torch_glog})
endif()
