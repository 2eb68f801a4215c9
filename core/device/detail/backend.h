#pragma once

#include "muster/core/device/context.h"

namespace muster::detail {

/// A backend's part of an `Event`, if its work is enqueued.
class BackendEvent {
 public:
  virtual ~BackendEvent() = default;
  virtual void record(Context& context, Stream stream) = 0;
  virtual bool complete() const = 0;
  virtual void wait() const = 0;
  virtual void waitOn(Context& context, Stream stream) const = 0;
};

/// A backend's part of a `Graph`.
class BackendGraph {
 public:
  virtual ~BackendGraph() = default;
  /// From now on, work that this thread enqueues on the context's compute stream is recorded.
  virtual void beginCapture() = 0;
  /// Prepares the recorded work for launching.
  virtual void endCapture() = 0;
  /// Drops the recorded work.
  virtual void abandonCapture() noexcept = 0;
  virtual void launch() = 0;
};

}  // namespace muster::detail
