#pragma once

#include <cstddef>
#include <oneapi/dnnl/dnnl.hpp>

#include "muster/core/device/buffer.h"
#include "muster/core/device/context.h"

namespace muster::cpu {

/// Memory that the plans of a context share, as large as the largest plan needs. A run may overwrite another
/// run's data.
class Workspace {
 public:
  /// Called when planning. May move the memory, so plans keep offsets and call `data()` in each run.
  void reserve(std::size_t bytes) {
    if (bytes <= buffer_.bytes()) return;
    const std::size_t before = buffer_.bytes();
    buffer_ = Buffer();  // free first: both buffers at once would take too much memory
    try {
      buffer_ = Buffer(bytes, Device::cpu());
    } catch (...) {
      if (before > 0) buffer_ = Buffer(before, Device::cpu());  // for the existing plans
      throw;
    }
  }
  std::byte* data() const { return buffer_.data(); }
  std::size_t bytes() const { return buffer_.bytes(); }

 private:
  Buffer buffer_;
};

/// The CPU backend's part of a context.
struct State : muster::detail::BackendState {
  MathMode mathMode() const override { return mode; }

  MathMode mode = MathMode::Float32;
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  Workspace workspace;
};

/// For a context on the CPU.
inline State& stateOf(Context& context) {
  return static_cast<State&>(context.backend());
}

}  // namespace muster::cpu
