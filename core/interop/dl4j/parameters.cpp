#include "muster/core/interop/dl4j/detail/parameters.h"

#include <array>
#include <cmath>

namespace muster::dl4j::detail {

std::int64_t Order::here(std::int64_t i, std::int64_t count) const {
  if (gates) {
    constexpr std::array<std::int64_t, 4> kGates{2, 1, 3, 0};
    const std::int64_t size = count / 4;
    return kGates[static_cast<std::size_t>(i / size)] * size + i % size;
  }
  const std::int64_t rest = count / (outer * inner);
  const std::int64_t o = i / (inner * rest), n = i / rest % inner;
  return (n * outer + o) * rest + i % rest;
}

float decoded(Coding coding, float there) {
  return coding == Coding::Same ? there : static_cast<float>(std::pow(10.0, 2.0 * there));
}

}  // namespace muster::dl4j::detail
