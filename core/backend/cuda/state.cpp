#include "muster/core/backend/cuda/state.h"

#include <atomic>
#include <cstdlib>
#include <utility>

#include "muster/core/backend/cuda/kernels/activation.h"
#include "muster/core/backend/cuda/kernels/channel_sums.h"
#include "muster/core/backend/cuda/spoil_workspace.h"
#include "muster/core/backend/cuda/switches.h"
#include "muster/core/base/error.h"
#include "muster/core/device/detail/cuda.h"

namespace muster::cuda {
namespace {

constexpr int kFirstWithTensorFloat32 = 8;  // compute capability, major
static_assert(kMostPartialSums * sizeof(double) <= kScratchBytes);

MathMode resolve(Device device, bool fast, std::optional<MathMode> mode) {
  if (!mode) mode = switches().mathMode;
  if (!mode) return fast ? MathMode::TensorFloat32 : MathMode::Float32;
  require(fast || *mode == MathMode::Float32, "context: {} has no {}, which needs compute capability {}.0",
          device.toString(), nameOf(*mode), kFirstWithTensorFloat32);
  return *mode;
}

/// A stream that does not synchronise with the legacy default stream.
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
                              ? fmt::format("{} is not available: {}", device.toString(), there.whyNone)
                              : fmt::format("{} is not available: this machine's last GPU is cuda:{}",
                                            device.toString(), there.count - 1));
}

/// Throws if the program has no code for this GPU: it was built for others and its PTX cannot be compiled.
void requireCode(Device device) {
  const cudaError_t error = findCode();
  const Meaning meaning = meaningOf(error);
  if (error == cudaSuccess) return;
  if (meaning == Meaning::OutOfMemory || meaning == Meaning::FailedForGood) check(error, "findCode()");
  static_cast<void>(cudaGetLastError());
  const DeviceProperties properties = cuda::propertiesOf(device);
  throw DeviceUnavailable(
      fmt::format("{} is not available: this build has no code for its compute capability {}.{} ({})",
                  device.toString(), properties.major, properties.minor, cudaGetErrorString(error)));
}

/// Requests 32 connections to a GPU instead of 8: streams that share a connection wait for each other's work.
/// The driver reads the variable at its first use in the process.
void askForConnections() {
  static const int done = ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  static_cast<void>(done);
}

std::atomic<int> statesWithLayers{0};

}  // namespace

// Keeps a positive count: afterwards, CUDA errors are failed calls, not missing devices.
DeviceCount deviceCount() {
  static std::atomic<int> counted{0};
  if (const int count = counted; count > 0) return {.count = count, .whyNone = ""};
  askForConnections();
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) {
    counted = count;
    return {.count = count, .whyNone = ""};
  }
  static_cast<void>(cudaGetLastError());
  int driver = 0, runtime = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || cudaRuntimeGetVersion(&runtime) != cudaSuccess)
    static_cast<void>(cudaGetLastError());
  return {.count = 0, .whyNone = whyNoDevice(error, driver, runtime)};
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

std::size_t freeMemoryOf(Device device) {
  requirePresent(device);
  const DeviceGuard guard(device.index());
  std::size_t free = 0, total = 0;
  MUSTER_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  return free;
}

ComputeStream::ComputeStream(Device device, bool layers)
    : stream(makeStream()),
      workspace(layers ? kWorkspaceBytes : 0, device),
      scratch(kScratchBytes, device),
      counters(kSumCounters * sizeof(std::uint32_t), device) {
  if (layers) {
    dnn = make<DnnOwner>([](auto* handle) { MUSTER_CUDA_CHECK(cuda::dnn().cudnnCreate(handle)); });
    MUSTER_CUDA_CHECK(cuda::dnn().cudnnSetStream(dnn.get(), stream.get()));
  }
  MUSTER_CUDA_CHECK(cudaMemsetAsync(counters.data(), 0, counters.bytes(), stream.get()));
  MUSTER_CUDA_CHECK(cudaStreamSynchronize(stream.get()));
}

State::State(Device device, std::optional<MathMode> mode, bool layers)
    : device_(device),
      capability_(10 * attribute(cudaDevAttrComputeCapabilityMajor, device.index()) +
                  attribute(cudaDevAttrComputeCapabilityMinor, device.index())),
      mathMode_(resolve(device, capability_ >= 10 * kFirstWithTensorFloat32, mode)),
      main_(device, layers),
      copy_(makeStream()),
      deviceResult_(kResultBytes, device),
      hostResult_(Buffer::pinned(kResultBytes)) {
  if (layers) {
    blas_ = make<BlasOwner>([](auto* handle) { MUSTER_CUDA_CHECK(blas().cublasLtCreate(handle)); });
  }
  if (layers) ++statesWithLayers;
}

State::~State() {
  if (main_.dnn) {
    --statesWithLayers;
    warnOfUnknownLayers();  // by now the context's network has planned all its layers
  }
  // Select the device and wait for the last use of handles and memory before members free them.
  MUSTER_CUDA_LOG(cudaSetDevice(device_.index()));
  MUSTER_CUDA_LOG(cudaStreamSynchronize(main_.stream.get()));
  if (side_) MUSTER_CUDA_LOG(cudaStreamSynchronize(side_->stream.get()));
  MUSTER_CUDA_LOG(cudaStreamSynchronize(copy_.get()));
}

void State::synchronize() {
  MUSTER_CUDA_CHECK(cudaStreamSynchronize(copy_.get()));
  if (side_) MUSTER_CUDA_CHECK(cudaStreamSynchronize(side_->stream.get()));
  MUSTER_CUDA_CHECK(cudaStreamSynchronize(main_.stream.get()));
}

void State::prepareSideStream() {
  if (side_ || !switches().sideStream) return;
  requireLayers();
  MUSTER_CUDA_CHECK(cudaSetDevice(device_.index()));
  for (EventOwner* event : {&forked_, &joined_})
    *event = make<EventOwner>(
        [](auto* made) { MUSTER_CUDA_CHECK(cudaEventCreateWithFlags(made, cudaEventDisableTiming)); });
  side_.emplace(device_, /*layers=*/true);
}

void State::beginSideStream() {
  if (!side_) return;
  MUSTER_CUDA_CHECK(cudaSetDevice(device_.index()));
  MUSTER_CUDA_CHECK(cudaEventRecord(forked_.get(), main_.stream.get()));
  MUSTER_CUDA_CHECK(cudaStreamWaitEvent(side_->stream.get(), forked_.get(), 0));
  current_ = &*side_;
  sideStreamUsed_ = true;
}

void State::joinSideStream() {
  if (!std::exchange(sideStreamUsed_, false)) return;
  MUSTER_CUDA_CHECK(cudaSetDevice(device_.index()));
  MUSTER_CUDA_CHECK(cudaEventRecord(joined_.get(), side_->stream.get()));
  MUSTER_CUDA_CHECK(cudaStreamWaitEvent(main_.stream.get(), joined_.get(), 0));
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
    message_ = Buffer();  // free first: both buffers at once would take too much memory
    message_ = Buffer(bytes, device_);
  }
  return message_.data();
}

void State::requireLayers() const {
  if (!main_.dnn) [[unlikely]]
    throw InvalidArgument(
        fmt::format("context: this one on {} was made for copies and merges, and cannot multiply matrices",
                    device_.toString()));
}

int State::withLayers() {
  return statesWithLayers;
}

State& stateOf(Context& context) {
  auto& state = static_cast<State&>(context.backend());
  MUSTER_CUDA_CHECK(cudaSetDevice(state.device().index()));
  return state;
}

std::unique_ptr<detail::BackendState> makeState(Device device, const ContextOptions& options) {
  requirePresent(device);
  MUSTER_CUDA_CHECK(cudaSetDevice(device.index()));
  requireCode(device);
  return std::make_unique<State>(device, options.mathMode, options.layers);
}

void spoilWorkspace(Context& context) {
  constexpr int kNaN = 0xFF;  // of each byte, in float32 and float64
  State& state = stateOf(context);
  const DeviceGuard current(state.device().index());
  MUSTER_CUDA_CHECK(cudaMemsetAsync(state.workspace(), kNaN, kWorkspaceBytes, state.stream()));
  MUSTER_CUDA_CHECK(cudaMemsetAsync(state.scratch(), kNaN, kScratchBytes, state.stream()));
}

}  // namespace muster::cuda
