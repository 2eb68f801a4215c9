#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "muster/core/tensor/tensor.h"

namespace muster {

/// A hash by which nodes compare what must be equal, by multiplication and shift.
class ByteHash {
 public:
  void add(std::span<const std::byte> bytes) {
    mix(bytes.size());
    for (; bytes.size() >= sizeof(std::uint64_t); bytes = bytes.subspan(sizeof(std::uint64_t))) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data(), sizeof word);
      mix(word);
    }
    for (const std::byte byte : bytes) mix(static_cast<std::uint64_t>(byte));
  }
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  void add(const Tensor& values) {
    const Tensor here = values.device().isCpu() ? values : copyTo(values, Device::cpu());
    add({static_cast<const std::byte*>(here.raw()), here.bytes()});
  }
  void mix(std::uint64_t word) {
    value_ = (value_ ^ word) * 0x9E3779B97F4A7C15U;
    value_ ^= value_ >> 29;
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0x6D75737465726E6FU;
};

}  // namespace muster
