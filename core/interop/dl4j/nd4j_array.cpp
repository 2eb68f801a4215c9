#include "muster/core/interop/dl4j/detail/nd4j_array.h"

#include <array>
#include <bit>
#include <cmath>

#include "muster/core/base/error.h"

namespace muster::dl4j::detail {
namespace {

constexpr std::uint64_t kMostRank = 32;

/// A buffer's header: its number of elements and their type.
struct Buffer {
  std::uint64_t elements = 0;
  std::string type;
};

Buffer bufferIn(JavaReader& reader) {
  const std::string mode = reader.text();
  // Until 1.0.0-alpha the length had four bytes.
  const bool longLength = mode == "LONG_SHAPE" || mode == "MIXED_DATA_TYPES";
  require(longLength || mode == "HEAP" || mode == "DIRECT" || mode == "JAVACPP",
          "holds no array of ND4J: it does not begin with a buffer's allocation mode");
  Buffer buffer;
  buffer.elements = reader.unsignedNumber(longLength ? 8 : 4);
  buffer.type = reader.text();
  return buffer;
}

/// The number of values of the array's shape.
std::uint64_t elementsOfShape(JavaReader& reader) {
  const Buffer buffer = bufferIn(reader);
  require(buffer.type == "LONG" || buffer.type == "INT", "its array's shape is of type {}", buffer.type);
  const int bytes = buffer.type == "LONG" ? 8 : 4;
  require(buffer.elements >= 1 && buffer.elements <= 2 * kMostRank + 4, "its array's shape has {} numbers",
          buffer.elements);
  const std::uint64_t rank = reader.unsignedNumber(bytes);
  require(rank <= kMostRank && buffer.elements == 2 * rank + 4,
          "its array's shape has {} numbers for {} dimensions", buffer.elements, rank);
  std::uint64_t product = 1;
  for (std::uint64_t i = 1; i < buffer.elements; ++i) {
    const std::uint64_t number = reader.unsignedNumber(bytes);
    if (i > rank) continue;
    require(number < (std::uint64_t{1} << 40) && product < (std::uint64_t{1} << 40),
            "its array is too large");
    product *= number;
  }
  return product;
}

float halfOf(std::uint64_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31);
  const auto fraction = static_cast<float>(bits & 1023);
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

float valueOf(std::string_view type, std::uint64_t bits) {
  if (type == "FLOAT") return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  if (type == "DOUBLE") return static_cast<float>(std::bit_cast<double>(bits));
  if (type == "BFLOAT16") return std::bit_cast<float>(static_cast<std::uint32_t>(bits << 16));
  return halfOf(bits);
}

template <typename T>
void writeNumber(std::string& bytes, T value) {
  for (int shift = static_cast<int>(sizeof(T)) * 8 - 8; shift >= 0; shift -= 8)
    bytes.push_back(static_cast<char>(value >> shift & 0xFF));
}

void writeBuffer(std::string& bytes, std::uint64_t elements, std::string_view type) {
  writeText(bytes, "MIXED_DATA_TYPES");
  writeNumber(bytes, elements);
  writeText(bytes, type);
}

}  // namespace

std::string_view JavaReader::take(std::uint64_t bytes) {
  require(bytes <= rest_.size(), "ends too early: {} more bytes are expected, {} are left", bytes,
          rest_.size());
  const auto taken = rest_.substr(0, bytes);
  rest_.remove_prefix(bytes);
  return taken;
}

std::uint64_t JavaReader::unsignedNumber(int bytes) {
  std::uint64_t number = 0;
  for (const char byte : take(static_cast<std::uint64_t>(bytes)))
    number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

double JavaReader::float64() {
  return std::bit_cast<double>(unsignedNumber(8));
}

std::string JavaReader::text() {
  return std::string(take(unsignedNumber(2)));
}

std::vector<float> readArray(JavaReader& reader) {
  const std::uint64_t expected = elementsOfShape(reader);
  const Buffer buffer = bufferIn(reader);
  const int bytes = buffer.type == "DOUBLE"                              ? 8
                    : buffer.type == "FLOAT"                             ? 4
                    : buffer.type == "HALF" || buffer.type == "BFLOAT16" ? 2
                                                                         : 0;
  require(bytes != 0, "its array is of type {}, expected FLOAT, DOUBLE, HALF or BFLOAT16", buffer.type);
  require(buffer.elements == expected, "its array has {} values for a shape of {}", buffer.elements,
          expected);
  require(buffer.elements <= reader.left() / static_cast<std::uint64_t>(bytes),
          "ends too early: {} values are expected, {} bytes are left", buffer.elements, reader.left());
  std::vector<float> values(buffer.elements);
  for (float& value : values) value = valueOf(buffer.type, reader.unsignedNumber(bytes));
  return values;
}

void writeText(std::string& bytes, std::string_view text) {
  writeNumber(bytes, static_cast<std::uint16_t>(text.size()));
  bytes += text;
}

void writeFloat64(std::string& bytes, double value) {
  writeNumber(bytes, std::bit_cast<std::uint64_t>(value));
}

void writeArray(std::string& bytes, std::span<const float> values) {
  constexpr std::uint64_t kFloat32 = 0x2000, kUnitStride = 1;
  const std::array<std::uint64_t, 8> shape{2, 1, values.size(), 1, 1, kFloat32, kUnitStride, 'c'};
  writeBuffer(bytes, shape.size(), "LONG");
  for (const std::uint64_t number : shape) writeNumber(bytes, number);
  writeBuffer(bytes, values.size(), "FLOAT");
  for (const float value : values) writeNumber(bytes, std::bit_cast<std::uint32_t>(value));
}

}  // namespace muster::dl4j::detail
