#pragma once

#include <thread>
#include <vector>

namespace muster {

/// Makes the thread's first call of the OpenMP library. LLVM's opens files then, and hangs if it cannot; it
/// also gives the thread all cores of the process, so the thread's own cores are set again.
void startOpenMp();

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
