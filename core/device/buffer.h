#pragma once

#include <cstddef>
#include <utility>

#include "muster/core/device/device.h"

namespace muster {

/// Owns a piece of a device's memory, aligned to 64 bytes. Move-only. The bytes start undefined.
class Buffer {
 public:
  Buffer() = default;
  /// @throws OutOfMemory naming the bytes asked for; DeviceUnavailable where this build cannot use `device`.
  Buffer(std::size_t bytes, Device device);
  ~Buffer();
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        device_(other.device_) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(device_, other.device_);
    return *this;
  }

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  Device device() const { return device_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  Device device_;
};

}  // namespace muster
