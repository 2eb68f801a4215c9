#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace muster {

/// Element types. Networks compute in Float32; Float64 is for references, UInt8 for images, Int64 for class
/// indices and counters.
enum class DType { Float32, Float64, UInt8, Int64 };
/// Bytes of an element.
constexpr std::size_t sizeOf(DType type) {
  switch (type) {
    case DType::Float32:
      return 4;
    case DType::Float64:
      return 8;
    case DType::UInt8:
      return 1;
    case DType::Int64:
      return 8;
  }
  return 0;
}
/// As in "float32".
constexpr std::string_view toString(DType type) {
  switch (type) {
    case DType::Float32:
      return "float32";
    case DType::Float64:
      return "float64";
    case DType::UInt8:
      return "uint8";
    case DType::Int64:
      return "int64";
  }
  return "?";
}

/// The DType of a C++ element type.
template <typename T>
inline constexpr DType kDTypeOf = [] {
  static_assert(sizeof(T) == 0, "not an element type");
  return DType::Float32;
}();
template <>
inline constexpr DType kDTypeOf<float> = DType::Float32;  ///< float32
template <>
inline constexpr DType kDTypeOf<double> = DType::Float64;  ///< float64
template <>
inline constexpr DType kDTypeOf<std::uint8_t> = DType::UInt8;
template <>
inline constexpr DType kDTypeOf<std::int64_t> = DType::Int64;

}  // namespace muster
