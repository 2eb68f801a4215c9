# From the checkout that this port is in. The component page needs dygraphs, which vcpkg does not have.
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../../../.." ABSOLUTE)
vcpkg_check_features(OUT_FEATURE_OPTIONS without INVERTED_FEATURES
  dl4j CMAKE_DISABLE_FIND_PACKAGE_LIBZIP
  gloo CMAKE_DISABLE_FIND_PACKAGE_Gloo
  nodes CMAKE_DISABLE_FIND_PACKAGE_MPI
  onnx CMAKE_DISABLE_FIND_PACKAGE_ONNX
  torch CMAKE_DISABLE_FIND_PACKAGE_Torch
)
if(NOT "onnx" IN_LIST FEATURES AND NOT "tensorboard" IN_LIST FEATURES)
  list(APPEND without -DCMAKE_DISABLE_FIND_PACKAGE_Protobuf=ON)
endif()
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    -DMUSTER_BUILD_TESTS=OFF
    -DMUSTER_BUILD_EXAMPLES=OFF
    -DMUSTER_CUDA=OFF
    -DMUSTER_DYGRAPHS=MUSTER_DYGRAPHS-NOTFOUND
    ${without}
  MAYBE_UNUSED_VARIABLES
    CMAKE_DISABLE_FIND_PACKAGE_ONNX
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/muster)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
