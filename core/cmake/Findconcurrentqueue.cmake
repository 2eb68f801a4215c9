# moodycamel's ConcurrentQueue: headers only, since version 1.0.4 in a folder moodycamel. Sets the target
# concurrentqueue::concurrentqueue; include <concurrentqueue.h>.
find_path(concurrentqueue_HEADER_DIR lightweightsemaphore.h
  PATH_SUFFIXES concurrentqueue/moodycamel concurrentqueue moodycamel)
mark_as_advanced(concurrentqueue_HEADER_DIR)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(concurrentqueue REQUIRED_VARS concurrentqueue_HEADER_DIR)
if(concurrentqueue_FOUND)
  # After find_package(concurrentqueue CONFIG) a project already has the target, for <moodycamel/concurrentqueue.h>.
  if(NOT TARGET concurrentqueue::concurrentqueue)
    add_library(concurrentqueue::concurrentqueue INTERFACE IMPORTED)
  endif()
  target_include_directories(concurrentqueue::concurrentqueue INTERFACE "${concurrentqueue_HEADER_DIR}")
endif()
