#pragma once

#include <cstddef>
#include <oneapi/dnnl/dnnl.hpp>

#include "muster/core/device/buffer.h"
#include "muster/core/device/context.h"

namespace muster::cpu {

/// Memory that a context's plans use one after the other: what one run leaves there, the next may overwrite.
/// As large as the largest plan made so far wants it.
class Workspace {
 public:
  /// Called while planning. May move the memory, so plans keep offsets and ask for `data()` in each run.
  void reserve(std::size_t bytes) {
    if (bytes <= buffer_.bytes()) return;
    buffer_ = Buffer();  // both at once would be too much
    buffer_ = Buffer(bytes, Device::cpu());
  }
  std::byte* data() const { return buffer_.data(); }
  std::size_t bytes() const { return buffer_.bytes(); }

 private:
  Buffer buffer_;
};

/// What a context keeps for the CPU backend.
struct State : detail::BackendState {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  Workspace workspace;
};

/// Of a context on the CPU.
inline State& stateOf(Context& context) {
  return static_cast<State&>(context.backend());
}

}  // namespace muster::cpu
