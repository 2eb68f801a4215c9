#pragma once

#include <cstdint>
#include <optional>

#include "muster/core/backend/cuda/kernels/launch.h"
#include "muster/core/backend/cuda/owners.h"
#include "muster/core/device/buffer.h"
#include "muster/core/device/context.h"

namespace muster::cuda {

// Note [Memory of a context that never moves]
// A captured graph holds the addresses used during capture. So memory that operations share is allocated
// once, with the context, and plans must fit in it: algorithms use at most `kWorkspaceBytes`, reductions at
// most `kScratchBytes` for their partial sums.

inline constexpr std::size_t kWorkspaceBytes = std::size_t{64} << 20;
inline constexpr std::size_t kScratchBytes = std::size_t{1} << 20;
inline constexpr std::size_t kResultBytes = 4096;

/// A stream for operations, with the resources that its operations share.
struct ComputeStream {
  /// @param layers  whether matrix products run on this stream.
  ComputeStream(Device device, bool layers);

  StreamOwner stream;
  DnnOwner dnn;      // only with layers
  Buffer workspace;  // only with layers
  Buffer scratch, counters;
};

/// The CUDA backend's part of a context. Created and destroyed with its device current.
class State final : public detail::BackendState {
 public:
  State(Device device, std::optional<MathMode> mode, bool layers);
  ~State() override;
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  MathMode mathMode() const override { return mathMode_; }
  void synchronize() override;
  void prepareSideStream() override;
  void beginSideStream() override;
  void endSideStream() override { current_ = &main_; }
  void joinSideStream() override;

  Device device() const { return device_; }
  /// The GPU's compute capability, 90 for 9.0.
  int capability() const { return capability_; }
  /// Number of contexts with layers in the process, each with a thread that waits for steps.
  static int withLayers();
  cudaStream_t stream(Stream stream) const {
    return (stream == Stream::Compute ? current_->stream : copy_).get();
  }
  /// The current stream for operations: the main or the side stream. Handles, workspace, scratch and counters
  /// below belong to it.
  cudaStream_t stream() const { return current_->stream.get(); }
  cublasLtHandle_t blasHandle() const {
    requireLayers();
    return blas_.get();
  }
  cudnnHandle_t dnnHandle() const {
    requireLayers();
    return current_->dnn.get();
  }

  /// Scratch memory of a library during one call on the current stream.
  void* workspace() const {
    requireLayers();
    return current_->workspace.data();
  }
  /// Memory for the partial results of one operation on the current stream, in 8-byte numbers.
  double* scratch() const { return reinterpret_cast<double*>(current_->scratch.data()); }
  /// The first of kSumCounters counters of finished blocks; zero before and after each kernel that uses them.
  std::uint32_t* counters() const { return reinterpret_cast<std::uint32_t*>(current_->counters.data()); }
  PartialSums partialSums() const { return {scratch(), counters()}; }
  /// Device memory for an operation's result; `readResult` copies it to the host.
  std::byte* deviceResult() const { return deviceResult_.data(); }
  /// Copies the first `bytes` of `deviceResult()` to the host and waits. Not while capturing.
  const std::byte* readResult(std::size_t bytes);
  /// Memory for a threshold message between device and host, at least `bytes`. Not while capturing.
  std::byte* message(std::size_t bytes);

 private:
  void requireLayers() const;

  Device device_;
  int capability_;
  MathMode mathMode_;
  ComputeStream main_;
  std::optional<ComputeStream> side_;  // after prepareSideStream()
  ComputeStream* current_ = &main_;
  EventOwner forked_, joined_;
  bool sideStreamUsed_ = false;  // since the last join
  StreamOwner copy_;
  BlasOwner blas_;
  Buffer deviceResult_, hostResult_, message_;
};

/// For a context on a GPU; selects that GPU for the calling thread. A context belongs to one thread, so only
/// the first call has an effect.
State& stateOf(Context& context);

}  // namespace muster::cuda
