# moodycamel's ConcurrentQueue: headers only, without a CMake package in Debian.
# Gives the target concurrentqueue::concurrentqueue, included as <concurrentqueue/concurrentqueue.h>.
find_path(concurrentqueue_INCLUDE_DIR concurrentqueue/concurrentqueue.h)
mark_as_advanced(concurrentqueue_INCLUDE_DIR)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(concurrentqueue REQUIRED_VARS concurrentqueue_INCLUDE_DIR)
if(concurrentqueue_FOUND AND NOT TARGET concurrentqueue::concurrentqueue)
  add_library(concurrentqueue::concurrentqueue INTERFACE IMPORTED)
  target_include_directories(concurrentqueue::concurrentqueue INTERFACE "${concurrentqueue_INCLUDE_DIR}")
endif()
