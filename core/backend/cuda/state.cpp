#include "muster/core/backend/cuda/state.h"

#include "muster/core/base/error.h"
#include "muster/core/device/detail/cuda.h"

namespace muster::cuda {
namespace {

constexpr int kFirstWithTensorFloat32 = 8;  // compute capability, major

MathMode resolve(Device device, std::optional<MathMode> mode) {
  const bool fast = cuda::propertiesOf(device).tensorFloat32;
  if (!mode) return fast ? MathMode::TensorFloat32 : MathMode::Float32;
  require(fast || *mode == MathMode::Float32, "context: {} has no {}, which needs compute capability {}.0",
          device.toString(), nameOf(*mode), kFirstWithTensorFloat32);
  return *mode;
}

/// Streams that wait neither for the legacy default stream nor it for them.
StreamOwner makeStream() {
  return make<StreamOwner>(
      [](auto* stream) { MUSTER_CUDA_CHECK(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking)); });
}

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  MUSTER_CUDA_CHECK(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

void requirePresent(Device device) {
  const DeviceCount there = deviceCount();
  if (device.index() < there.count) return;
  throw DeviceUnavailable(there.count == 0
                              ? fmt::format("{} is not to be had: {}", device.toString(), there.whyNone)
                              : fmt::format("{} is not to be had: this machine's last GPU is cuda:{}",
                                            device.toString(), there.count - 1));
}

}  // namespace

DeviceCount deviceCount() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return {.count = count, .whyNone = ""};
  static_cast<void>(cudaGetLastError());
  return {.count = 0,
          .whyNone = error == cudaSuccess
                         ? std::string("this machine has no GPU")
                         : fmt::format("no GPU can be used on this machine ({})", cudaGetErrorString(error))};
}

DeviceProperties propertiesOf(Device device) {
  requirePresent(device);
  cudaDeviceProp properties{};
  MUSTER_CUDA_CHECK(cudaGetDeviceProperties(&properties, device.index()));
  DeviceProperties result{.name = properties.name,
                          .memoryBytes = properties.totalGlobalMem,
                          .multiprocessors = properties.multiProcessorCount,
                          .major = attribute(cudaDevAttrComputeCapabilityMajor, device.index()),
                          .minor = attribute(cudaDevAttrComputeCapabilityMinor, device.index())};
  result.tensorFloat32 = result.major >= kFirstWithTensorFloat32;
  MUSTER_CUDA_CHECK(cudaDriverGetVersion(&result.driver));
  MUSTER_CUDA_CHECK(cudaRuntimeGetVersion(&result.runtime));
  return result;
}

State::State(Device device, std::optional<MathMode> mode)
    : device_(device),
      mathMode_(resolve(device, mode)),
      compute_(makeStream()),
      copy_(makeStream()),
      blas_(make<BlasOwner>([](auto* handle) { MUSTER_CUDA_CHECK(blas().cublasLtCreate(handle)); })),
      dnn_(make<DnnOwner>([](auto* handle) { MUSTER_CUDA_CHECK(dnn().cudnnCreate(handle)); })),
      workspace_(kWorkspaceBytes, device),
      scratch_(kScratchBytes, device),
      counter_(sizeof(std::uint32_t), device),
      deviceResult_(kResultBytes, device),
      hostResult_(Buffer::pinned(kResultBytes)) {
  MUSTER_CUDA_CHECK(dnn().cudnnSetStream(dnn_.get(), stream()));
  MUSTER_CUDA_CHECK(cudaMemsetAsync(counter_.data(), 0, counter_.bytes(), stream()));
  synchronize();
}

State::~State() {
  // Handles and memory go only when nothing uses them any more, and on their own device.
  MUSTER_CUDA_LOG(cudaSetDevice(device_.index()));
  MUSTER_CUDA_LOG(cudaStreamSynchronize(compute_.get()));
  MUSTER_CUDA_LOG(cudaStreamSynchronize(copy_.get()));
}

void State::synchronize() {
  MUSTER_CUDA_CHECK(cudaStreamSynchronize(copy_.get()));
  MUSTER_CUDA_CHECK(cudaStreamSynchronize(compute_.get()));
}

const std::byte* State::readResult(std::size_t bytes) {
  require(bytes <= kResultBytes, "cuda: a result of {} bytes is more than {}", bytes, kResultBytes);
  MUSTER_CUDA_CHECK(
      cudaMemcpyAsync(hostResult_.data(), deviceResult_.data(), bytes, cudaMemcpyDeviceToHost, stream()));
  MUSTER_CUDA_CHECK(cudaStreamSynchronize(stream()));
  return hostResult_.data();
}

std::byte* State::message(std::size_t bytes) {
  if (bytes > message_.bytes()) {
    message_ = Buffer();  // both at once would be too much
    message_ = Buffer(bytes, device_);
  }
  return message_.data();
}

State& stateOf(Context& context) {
  auto& state = static_cast<State&>(context.backend());
  MUSTER_CUDA_CHECK(cudaSetDevice(state.device().index()));
  return state;
}

std::unique_ptr<detail::BackendState> makeState(Device device, const ContextOptions& options) {
  requirePresent(device);
  MUSTER_CUDA_CHECK(cudaSetDevice(device.index()));
  return std::make_unique<State>(device, options.mathMode);
}

}  // namespace muster::cuda
