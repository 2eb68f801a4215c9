#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace muster::fuzz {

/// A tensor's numbers within a file, to be replaced by hostile ones.
class TensorNumbers {
 public:
  TensorNumbers() = default;
  /// @param dtype  as in a safetensors file; numbers of an unknown type are bytes.
  TensorNumbers(std::string_view dtype, std::span<char> bytes);

  std::size_t size() const;
  /// How many hostile numbers the type has.
  std::size_t hostile() const;
  /// Replaces a number by one of them.
  void set(std::size_t element, std::size_t choice);

 private:
  enum class Type { Integer, Double, Float, Byte };
  std::size_t width() const;

  Type type_ = Type::Byte;
  std::span<char> bytes_;
};

}  // namespace muster::fuzz
