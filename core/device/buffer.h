#pragma once

#include <cstddef>
#include <utility>

#include "muster/core/device/device.h"

namespace muster {

/// Owns memory of a device, aligned to 64 bytes and uninitialised. Move-only. Belongs to no context and no
/// stream: freeing it waits for its device's work.
class Buffer {
 public:
  Buffer() = default;
  /// @throws OutOfMemory naming the bytes requested, and on a GPU the free bytes; DeviceUnavailable if
  ///         `device` cannot be used.
  Buffer(std::size_t bytes, Device device);
  /// Host memory that GPUs copy to and from asynchronously: pinned if there is a GPU, else ordinary memory.
  /// @throws OutOfMemory.
  static Buffer pinned(std::size_t bytes);
  ~Buffer();
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        device_(other.device_),
        pinned_(other.pinned_) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(device_, other.device_);
    std::swap(pinned_, other.pinned_);
    return *this;
  }

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  /// Created by `pinned`.
  bool isPinned() const { return pinned_ != Pinning::None; }

 private:
  enum class Pinning { None, Asked, Locked };  // Asked: ordinary memory, because there is no GPU

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  Device device_;
  Pinning pinned_ = Pinning::None;
};

}  // namespace muster
