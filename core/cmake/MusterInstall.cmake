# The package for find_package(muster): libraries, headers under include/muster, and a target for each component. Each
# target has its own file, so that find_package searches only for the dependencies of the requested components.
include(CMakePackageConfigHelpers)
set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/muster")

install(TARGETS muster EXPORT musterTargets)
install(EXPORT musterTargets NAMESPACE muster:: DESTINATION "${package_folder}" COMPONENT dev)
# Debian packages: one for the base and one for each component with more dependencies (see MusterPackages).
set(muster_base core datasets parallel watch)
set(muster_built "")
foreach(component ${muster_base} nodes dl4j gloo onnx page tensorboard torch run)
  if(TARGET muster_${component})
    list(APPEND muster_built ${component})
    set(part "")
    if(NOT component IN_LIST muster_base)
      set(part "${component}-")
    endif()
    install(TARGETS muster_${component} EXPORT muster_${component}Targets
      LIBRARY COMPONENT ${part}library NAMELINK_COMPONENT ${part}dev
      ARCHIVE COMPONENT ${part}dev)
    install(EXPORT muster_${component}Targets NAMESPACE muster:: DESTINATION "${package_folder}" COMPONENT ${part}dev)
  endif()
endforeach()

# All that is installed, in one target. An installation of a part would not be noticed, or abort half-way: before
# anything is copied, it fails with the names of what is not built.
set(muster_wanted "")
foreach(component ${muster_built})
  list(APPEND muster_wanted muster_${component})
endforeach()
if(TARGET muster_program)
  list(APPEND muster_wanted muster_program)
endif()
add_custom_target(muster_installed DEPENDS ${muster_wanted})
if(TARGET muster_man)
  add_dependencies(muster_installed muster_man)
endif()
set(muster_files "")
get_property(muster_pages GLOBAL PROPERTY MUSTER_INSTALLED_FILES)
foreach(page ${muster_pages})
  string(APPEND muster_files "\n  \"${page}\"")
endforeach()
foreach(wanted ${muster_wanted})
  string(APPEND muster_files "\n  \"$<TARGET_FILE:${wanted}>\"")
endforeach()
file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/install_check_$<CONFIG>.cmake" CONTENT "set(missing \"\")
foreach(file${muster_files})
  if(NOT EXISTS \"\${file}\")
    get_filename_component(name \"\${file}\" NAME)
    list(APPEND missing \"\${name}\")
  endif()
endforeach()
if(missing)
  list(JOIN missing \", \" missing)
  message(FATAL_ERROR \"muster is not installed, as this is not built: \${missing}. Build it first, for example by \"
    \"cmake --build ${PROJECT_BINARY_DIR} --target muster_installed; ./run install does both\")
endif()
")

# Backend headers are not installed.
install(DIRECTORY core datasets parallel DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/muster"
  COMPONENT dev FILES_MATCHING PATTERN "*.h" PATTERN "backend" EXCLUDE PATTERN "cmake" EXCLUDE
  PATTERN "assets" EXCLUDE)
install(FILES "${PROJECT_BINARY_DIR}/include/muster/layers.h" "${PROJECT_BINARY_DIR}/include/muster/strategies.h"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/muster" COMPONENT dev)

set(muster_static TRUE)
if(BUILD_SHARED_LIBS)
  set(muster_static FALSE)
endif()
configure_package_config_file(core/cmake/musterConfig.cmake.in musterConfig.cmake
  INSTALL_DESTINATION "${package_folder}")
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(musterConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/musterConfig.cmake"
  "${PROJECT_BINARY_DIR}/musterConfigVersion.cmake"
  core/cmake/FindLIBZIP.cmake
  core/cmake/FindTorch.cmake
  core/cmake/Findconcurrentqueue.cmake
  DESTINATION "${package_folder}" COMPONENT dev)

# For pkg-config: the libraries of muster::muster. Boost and Debian's oneDNN have no .pc files. Shared libraries load
# their own dependencies.
file(RELATIVE_PATH muster_pc_up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")  # so that the package can be moved
set(muster_pc_requires "fmt")
set(muster_pc_libraries "")
if(NOT BUILD_SHARED_LIBS)
  set(muster_pc_requires "fmt libcurl libcrypto libjpeg libpng zlib")
  set(muster_pc_libraries "-lboost_json -lboost_iostreams -ldnnl -fopenmp -ldl")
  if(MUSTER_CUDA_BUILT)
    string(APPEND muster_pc_libraries " -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lrt")
  endif()
endif()
configure_file(core/cmake/muster.pc.in "${PROJECT_BINARY_DIR}/muster.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/muster.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT dev)
include(MusterPackages)
