#include "muster/core/device/buffer.h"

#include <cstdlib>

#include "muster/built.h"
#include "muster/core/base/error.h"
#include "muster/core/device/detail/buffer_bytes.h"
#include "muster/core/device/detail/cuda.h"

namespace muster {

constexpr std::size_t kAlignment = 64;

namespace {

thread_local std::int64_t bytesOfThread = 0;

std::byte* allocateOnCpu(std::size_t bytes) {
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  auto* const data =
      rounded < bytes ? nullptr : static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
  if (!data) throw OutOfMemory(fmt::format("out of memory on cpu: {} bytes were asked for", bytes));
  bytesOfThread += static_cast<std::int64_t>(bytes);
  return data;
}

std::byte* allocateOn(Device device, std::size_t bytes) {
  if (device.isCpu()) return allocateOnCpu(bytes);
  if constexpr (kCudaBuilt) return cuda::allocate(bytes, device);
  throw DeviceUnavailable(fmt::format("buffer: this build cannot allocate on {}", device.toString()));
}

}  // namespace

Buffer::Buffer(std::size_t bytes, Device device) : bytes_(bytes), device_(device) {
  if (bytes > 0) data_ = allocateOn(device, bytes);
}

Buffer Buffer::pinned(std::size_t bytes) {
  if constexpr (kCudaBuilt) {
    if (bytes > 0 && cuda::deviceCount().count > 0) {
      Buffer buffer;
      buffer.data_ = cuda::allocatePinned(bytes);
      buffer.bytes_ = bytes;
      buffer.pinned_ = Pinning::Locked;
      return buffer;
    }
  }
  Buffer buffer(bytes, Device::cpu());
  buffer.pinned_ = Pinning::Asked;
  return buffer;
}

Buffer::~Buffer() {
  if (!data_) return;
  if constexpr (kCudaBuilt) {
    if (pinned_ == Pinning::Locked) {
      cuda::releasePinned(data_);
      return;
    }
    if (!device_.isCpu()) {
      cuda::release(data_, device_);
      return;
    }
  }
  bytesOfThread -= static_cast<std::int64_t>(bytes_);
  std::free(data_);
}

std::int64_t detail::cpuBytesOfThread() {
  return bytesOfThread;
}

}  // namespace muster
