#include "tests/fuzz/tensor_numbers.h"

#include "tests/fuzz/hostile_values.h"

namespace muster::fuzz {
namespace {

float asFloat(double number) {
  constexpr double kMost = 3e38;
  return static_cast<float>(std::isfinite(number) ? std::clamp(number, -kMost, kMost) : number);
}

}  // namespace

TensorNumbers::TensorNumbers(std::string_view dtype, std::span<char> bytes)
    : type_(dtype == "I64"   ? Type::Integer
            : dtype == "F64" ? Type::Double
            : dtype == "F32" ? Type::Float
                             : Type::Byte),
      bytes_(bytes) {}

std::size_t TensorNumbers::width() const {
  return type_ == Type::Byte ? 1 : type_ == Type::Float ? sizeof(float) : sizeof(double);
}

std::size_t TensorNumbers::size() const {
  return bytes_.size() / width();
}

std::size_t TensorNumbers::hostile() const {
  constexpr std::size_t kBytes = 2;
  return type_ == Type::Byte      ? kBytes
         : type_ == Type::Integer ? hostileIntegers().size()
                                  : hostileDoubles().size();
}

void TensorNumbers::set(std::size_t element, std::size_t choice) {
  const auto write = [&](auto number) {
    std::memcpy(bytes_.data() + element * width(), &number, sizeof number);
  };
  switch (type_) {
    case Type::Integer:
      return write(hostileIntegers()[choice]);
    case Type::Double:
      return write(hostileDoubles()[choice]);
    case Type::Float:
      return write(asFloat(hostileDoubles()[choice]));
    case Type::Byte:
      return write(static_cast<std::uint8_t>(choice == 0 ? 0 : 'a'));
  }
}

}  // namespace muster::fuzz
