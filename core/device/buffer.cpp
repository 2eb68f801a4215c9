#include "muster/core/device/buffer.h"

#include <cstdlib>

#include "muster/core/base/error.h"

namespace muster {

constexpr std::size_t kAlignment = 64;

Buffer::Buffer(std::size_t bytes, Device device) : bytes_(bytes), device_(device) {
  if (!device.isCpu())
    throw DeviceUnavailable(fmt::format("buffer: this build cannot allocate on {}", device.toString()));
  if (bytes == 0) return;
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  data_ = rounded < bytes ? nullptr : static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
  if (!data_)
    throw OutOfMemory(fmt::format("out of memory on {}: {} bytes were asked for", device.toString(), bytes));
}

Buffer::~Buffer() {
  std::free(data_);
}

}  // namespace muster
