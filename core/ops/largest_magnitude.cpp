#include "muster/core/ops/largest_magnitude.h"

#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

namespace muster {

double largestMagnitude(const Tensor& x, std::int64_t begin, std::int64_t end) {
  detail::expectOnCpu("largestMagnitude", x);
  const bool real = x.dtype() == DType::Float32 || x.dtype() == DType::Float64;
  if (!x.defined() || !real || x.layout() != Layout::RowMajor) [[unlikely]]
    throw InvalidArgument(
        fmt::format("largestMagnitude: expected float32 or float64, row-major, got {}", x.toString()));
  require(0 <= begin && begin <= end && end <= x.elements(),
          "largestMagnitude: [{}, {}) is not within {} elements", begin, end, x.elements());
  return cpu::largestMagnitude(x, begin, end);
}

}  // namespace muster
