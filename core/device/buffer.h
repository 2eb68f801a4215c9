#pragma once

#include <cstddef>
#include <utility>

#include "muster/core/device/device.h"

namespace muster {

/// Owns a piece of a device's memory, aligned to 64 bytes. Move-only. The bytes start undefined. It belongs
/// to no context and no stream: freeing it waits for what its device is doing.
class Buffer {
 public:
  Buffer() = default;
  /// @throws OutOfMemory naming the bytes asked for, and on a GPU those that are free; DeviceUnavailable
  /// where
  ///         `device` cannot be used.
  Buffer(std::size_t bytes, Device device);
  /// Memory of the CPU from and to which GPUs copy directly, while both go on with other work: page-locked
  /// where there is a GPU, ordinary memory elsewhere. @throws OutOfMemory.
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
  /// Made by `pinned`.
  bool isPinned() const { return pinned_ != Pinning::None; }

 private:
  enum class Pinning { None, Asked, Locked };  // asked: there is no GPU, so it is ordinary memory

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  Device device_;
  Pinning pinned_ = Pinning::None;
};

}  // namespace muster
