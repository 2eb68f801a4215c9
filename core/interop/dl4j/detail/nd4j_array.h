#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::dl4j::detail {

/// Reads big-endian values and texts as Java's DataOutputStream writes them.
/// All members throw InvalidArgument if the bytes end too early.
class JavaReader {
 public:
  explicit JavaReader(std::string_view bytes) : rest_(bytes) {}
  std::uint64_t unsignedNumber(int bytes);
  double float64();
  /// A text with its length in two bytes.
  std::string text();
  std::string_view take(std::uint64_t bytes);
  std::size_t left() const { return rest_.size(); }

 private:
  std::string_view rest_;
};

/// An array as `Nd4j.write` writes it: a buffer of its shape and a buffer of its values. Of any shape; the
/// values are in order 'c' or 'f', which are the same for vectors.
/// @throws InvalidArgument for a type without floating point, a shape that its values do not fill, or bytes
///         that end too early.
std::vector<float> readArray(JavaReader& reader);

/// Appends a row vector [1, n] as ND4J 1.0.0-M2 does.
void writeArray(std::string& bytes, std::span<const float> values);

void writeText(std::string& bytes, std::string_view text);
void writeFloat64(std::string& bytes, double value);

/// The bytes that `writeArray` writes before the values, and at most that.
inline constexpr std::uint64_t kMostArrayHeader = 1024;

}  // namespace muster::dl4j::detail
