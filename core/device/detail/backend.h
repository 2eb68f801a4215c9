#pragma once

#include "muster/core/device/context.h"

namespace muster::detail {

/// What a backend whose work is enqueued has behind an `Event`.
class BackendEvent {
 public:
  virtual ~BackendEvent() = default;
  virtual void record(Context& context, Stream stream) = 0;
  virtual bool complete() const = 0;
  virtual void wait() const = 0;
  virtual void waitOn(Context& context, Stream stream) const = 0;
};

/// What it has behind a `Graph`.
class BackendGraph {
 public:
  virtual ~BackendGraph() = default;
  /// From here on what is enqueued on the context's compute stream by this thread is recorded.
  virtual void beginCapture() = 0;
  /// Makes what was recorded ready to be launched.
  virtual void endCapture() = 0;
  /// Forgets what was recorded.
  virtual void abandonCapture() noexcept = 0;
  virtual void launch() = 0;
};

}  // namespace muster::detail
