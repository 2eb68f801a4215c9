# libzip: sets the target LIBZIP::LIBZIP and LIBZIP_VERSION. Its own configuration, as Debian has it, is only usable
# with its programs installed, which are in other packages.
find_path(LIBZIP_INCLUDE_DIR zip.h)
find_library(LIBZIP_LIBRARY zip)
mark_as_advanced(LIBZIP_INCLUDE_DIR LIBZIP_LIBRARY)
if(EXISTS "${LIBZIP_INCLUDE_DIR}/zipconf.h")
  file(STRINGS "${LIBZIP_INCLUDE_DIR}/zipconf.h" LIBZIP_VERSION REGEX "define LIBZIP_VERSION \"")
  string(REGEX REPLACE ".*\"(.*)\".*" "\\1" LIBZIP_VERSION "${LIBZIP_VERSION}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LIBZIP REQUIRED_VARS LIBZIP_LIBRARY LIBZIP_INCLUDE_DIR VERSION_VAR LIBZIP_VERSION)
if(LIBZIP_FOUND AND NOT TARGET LIBZIP::LIBZIP)
  add_library(LIBZIP::LIBZIP UNKNOWN IMPORTED)
  set_target_properties(LIBZIP::LIBZIP PROPERTIES
    IMPORTED_LOCATION "${LIBZIP_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${LIBZIP_INCLUDE_DIR}")
endif()
