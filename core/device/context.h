#pragma once

#include <memory>
#include <vector>

#include "muster/core/device/affinity.h"
#include "muster/core/device/device.h"

namespace muster {

namespace detail {
/// Library handles and streams of one backend; each backend derives its own.
struct BackendState {
  virtual ~BackendState() = default;
};
}  // namespace detail

namespace cpu {
std::unique_ptr<detail::BackendState> makeState();
}

struct ContextOptions {
  /// Threads that one operation uses on the CPU; at least 1.
  int threads = 1;
  /// Cores to which the constructing thread (and the threads its operations start) is pinned while the
  /// context lives; empty: not pinned.
  std::vector<int> cores = {};
};

/// Where a thread computes: a device, its library handles and its thread budget. A worker makes its own on
/// its own thread and destroys it there; one thread at a time uses it.
///
/// Work on the CPU is done when a call returns. Work on a GPU is enqueued on the context's stream.
class Context {
 public:
  /// @throws InvalidArgument for threads < 1, or for cores that the calling thread may not use;
  ///         DeviceUnavailable where `device` is not to be had in this build or on this machine.
  explicit Context(Device device = Device::cpu(), ContextOptions options = {});
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Device device() const { return device_; }
  int threads() const { return options_.threads; }
  const std::vector<int>& cores() const { return options_.cores; }

  /// Waits until everything enqueued here is done. On the CPU it always is.
  void synchronize();

  /// For backends alone.
  detail::BackendState& backend() { return *backend_; }

 private:
  Device device_;
  ContextOptions options_;
  ThreadPin pin_;
  std::unique_ptr<detail::BackendState> backend_;
};

/// While it lives, the calling thread's operations use `context`'s number of threads, which is a setting of
/// the thread. Models open one around each step; whoever calls ops directly opens one too.
class ContextScope {
 public:
  explicit ContextScope(Context& context);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  int threadsBefore_;
};

/// A point in a context's work that others can wait for. On the CPU every event is complete when it is made.
class Event {
 public:
  bool complete() const { return true; }
  void wait() const {}
};

}  // namespace muster
