#pragma once

#include <algorithm>
#include <cstddef>

#include "muster/core/backend/cuda/owners.h"
#include "muster/core/backend/cuda/state.h"
#include "muster/core/backend/cuda/vendor.h"
#include "muster/core/base/error.h"
#include "muster/core/device/buffer.h"

namespace muster::cuda {

/// The workspace of a plan's calls: the context's, or one of its own if that is too small.
class DnnWorkspace {
 public:
  explicit DnnWorkspace(State& state) : state_(state) {}

  /// What cuDNN's calls get.
  void* data() const { return own_.bytes() > 0 ? own_.data() : state_.workspace(); }
  std::size_t bytes() const { return bytes_; }
  /// Whether it is the plan's own.
  bool own() const { return own_.bytes() > 0; }

  /// Runs a call with at least `bytes` of workspace; restores the workspace if the allocation or call fails.
  template <typename Run>
  cudnnStatus_t tryWith(std::size_t bytes, Run run) {
    const std::size_t before = bytes_;
    cudnnStatus_t status = CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    try {
      set(std::max(bytes, before));
      status = run();
    } catch (const OutOfMemory&) {
      static_cast<void>(cudaGetLastError());
    }
    if (status != CUDNN_STATUS_SUCCESS) set(before);
    return status;
  }

 private:
  void set(std::size_t bytes) {
    if (bytes == bytes_) return;
    own_ = Buffer();  // free first: both buffers at once would take too much memory
    bytes_ = kWorkspaceBytes;
    if (bytes > kWorkspaceBytes) own_ = Buffer(bytes, state_.device());
    bytes_ = bytes;
  }

  State& state_;
  std::size_t bytes_ = kWorkspaceBytes;
  Buffer own_;
};

}  // namespace muster::cuda
