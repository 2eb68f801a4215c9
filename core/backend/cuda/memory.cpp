#include "muster/core/backend/cuda/state.h"
#include "muster/core/base/error.h"
#include "muster/core/device/detail/cuda.h"

// Note [Plain allocation]
// Memory comes from cudaMalloc and is freed by cudaFree. It is planned once, so their speed does not matter,
// and cudaFree waits for kernels that still use it. Stream-ordered allocation does not fit: a Buffer has no
// stream and may outlive the context whose stream would free it.

namespace muster::cuda {
namespace {

std::byte* orOutOfMemory(cudaError_t error, void* data, std::string_view where, std::size_t bytes,
                         const char* call) {
  if (meaningOf(error) == Meaning::OutOfMemory) {
    static_cast<void>(cudaGetLastError());
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), call);
    throw OutOfMemory(outOfMemoryText(where, bytes, free, total));
  }
  check(error, call);
  return static_cast<std::byte*>(data);
}

/// Enqueues a copy; CUDA copies between two GPUs directly if it can, else through the host.
void enqueueCopy(Place source, Place target, std::size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return;
  if (!source.device.isCpu() && !target.device.isCpu() && source.device != target.device) {
    MUSTER_CUDA_CHECK(cudaMemcpyPeerAsync(target.data, target.device.index(), source.data,
                                          source.device.index(), bytes, stream));
    return;
  }
  const auto kind = source.device.isCpu()   ? cudaMemcpyHostToDevice
                    : target.device.isCpu() ? cudaMemcpyDeviceToHost
                                            : cudaMemcpyDeviceToDevice;
  MUSTER_CUDA_CHECK(cudaMemcpyAsync(target.data, source.data, bytes, kind, stream));
}

Device gpuOf(const Place& source, const Place& target) {
  return target.device.isCpu() ? source.device : target.device;
}

/// Waits for the calling thread's own stream, which is independent of other streams.
void finishOwnStream() {
  MUSTER_CUDA_CHECK(cudaStreamSynchronize(cudaStreamPerThread));
}

/// A device for calls that need any device: the current one if it is in use, else the first one in use. So a
/// thread that has selected no device creates no context on an unused GPU.
int anyInUse() {
  const int count = deviceCount().count;  // before any other call of CUDA
  int current = 0;
  MUSTER_CUDA_CHECK(cudaGetDevice(&current));
  if (inUse(current)) return current;
  for (int device = 0; device < count; ++device)
    if (inUse(device)) return device;
  return current;
}

}  // namespace

std::byte* allocate(std::size_t bytes, Device device) {
  const DeviceCount there = deviceCount();
  if (device.index() >= there.count)
    throw DeviceUnavailable(fmt::format("buffer: {} is not available on this machine{}{}", device.toString(),
                                        there.whyNone.empty() ? "" : ": ", there.whyNone));
  const DeviceGuard guard(device.index());
  void* data = nullptr;
  const cudaError_t error = cudaMalloc(&data, bytes);
  return orOutOfMemory(error, data, device.toString(), bytes, "cudaMalloc(&data, bytes)");
}

void release(std::byte* data, Device device) noexcept {
  try {
    const DeviceGuard guard(device.index());
    MUSTER_CUDA_LOG(cudaFree(data));
  } catch (const std::exception& error) {
    MUSTER_CUDA_LOG(cudaFree(data));
  }
}

std::byte* allocatePinned(std::size_t bytes) {
  const DeviceGuard guard(anyInUse());
  void* data = nullptr;
  const cudaError_t error = cudaHostAlloc(&data, bytes, cudaHostAllocPortable);
  if (meaningOf(error) == Meaning::OutOfMemory) {
    static_cast<void>(cudaGetLastError());
    throw OutOfMemory(fmt::format("out of pinned memory on cpu: {} bytes were asked for", bytes));
  }
  check(error, "cudaHostAlloc(&data, bytes, cudaHostAllocPortable)");
  return static_cast<std::byte*>(data);
}

void releasePinned(std::byte* data) noexcept {
  try {
    const DeviceGuard guard(anyInUse());
    MUSTER_CUDA_LOG(cudaFreeHost(data));
  } catch (const std::exception& error) {
    MUSTER_CUDA_LOG(cudaFreeHost(data));
  }
}

void copyBytes(Place source, Place target, std::size_t bytes, Context& context, Stream stream) {
  enqueueCopy(source, target, bytes, stateOf(context).stream(stream));
}

void copyBytes(Place source, Place target, std::size_t bytes) {
  const DeviceGuard guard(gpuOf(source, target).index());
  enqueueCopy(source, target, bytes, cudaStreamPerThread);
  finishOwnStream();
}

void zeroBytes(Place target, std::size_t bytes, Context& context) {
  if (bytes > 0) MUSTER_CUDA_CHECK(cudaMemsetAsync(target.data, 0, bytes, stateOf(context).stream()));
}

void zeroBytes(Place target, std::size_t bytes) {
  const DeviceGuard guard(target.device.index());
  if (bytes > 0) MUSTER_CUDA_CHECK(cudaMemsetAsync(target.data, 0, bytes, cudaStreamPerThread));
  finishOwnStream();
}

}  // namespace muster::cuda
