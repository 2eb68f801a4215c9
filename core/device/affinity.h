#pragma once

#include <thread>
#include <vector>

namespace muster {

/// Pins the calling thread, and the threads that its parallel loops use, to some cores; gives the calling
/// thread its former cores back in the destructor, if that runs on the same thread.
class ThreadPin {
 public:
  /// No cores: pins nothing.
  /// @param threads  of a parallel loop, the calling one included.
  /// @throws InvalidArgument naming the cores if the system refuses them.
  ThreadPin(const std::vector<int>& cores, int threads);
  ~ThreadPin();
  ThreadPin(const ThreadPin&) = delete;
  ThreadPin& operator=(const ThreadPin&) = delete;

 private:
  std::vector<int> before_;  // empty where nothing was pinned
  int threads_;
  std::thread::id thread_;
};

}  // namespace muster
