#pragma once

#include <thread>
#include <vector>

namespace muster {

/// Pins the calling thread, and the threads of its parallel loops, to some cores. The destructor restores the
/// calling thread's cores, if it runs on the same thread.
class ThreadPin {
 public:
  /// @param cores    empty: pins nothing.
  /// @param threads  of a parallel loop, including the calling one.
  /// @throws InvalidArgument naming the cores if the system refuses them.
  ThreadPin(const std::vector<int>& cores, int threads);
  ~ThreadPin();
  ThreadPin(const ThreadPin&) = delete;
  ThreadPin& operator=(const ThreadPin&) = delete;

 private:
  std::vector<int> before_;  // empty if not pinned
  int threads_;
  std::thread::id thread_;
};

}  // namespace muster
