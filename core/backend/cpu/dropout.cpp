#include "muster/core/ops/dropout.h"

#include <cmath>

#include "muster/core/backend/cpu/parallel.h"

namespace muster::cpu {
namespace {

struct Mask {
  std::uint64_t threshold;  // an element whose random word is smaller becomes zero
  float scale;              // of the remaining elements
};

/// One row: each index of the stream gives numbers for four elements.
void dropRow(const float* x, float* y, std::int64_t features, Mask mask, const RandomStream& random,
             std::uint64_t index) {
  for (std::int64_t e = 0; e < features; e += 4, ++index) {
    const auto words = random.words(index);
    const std::int64_t count = std::min<std::int64_t>(4, features - e);
    for (std::int64_t i = 0; i < count; ++i)
      y[e + i] = words[static_cast<std::size_t>(i)] < mask.threshold ? 0.0f : x[e + i] * mask.scale;
  }
}

}  // namespace

void dropout(const Tensor& x, Tensor& y, double rate, const RandomStream& random, std::int64_t firstExample,
             Context& context) {
  if (rate == 0) return copy(x, y);
  const std::int64_t features = x.shape().dropFirst().elements();
  const std::int64_t indices = (features + 3) / 4;
  const Mask mask{.threshold = static_cast<std::uint64_t>(std::floor(rate * 0x1p32)),
                  .scale = static_cast<float>(1 / (1 - rate))};
  const float* from = x.data<float>();
  float* to = y.data<float>();
  parallelFor(context, x.shape()[0], 8, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n)
      dropRow(from + n * features, to + n * features, features, mask, random,
              static_cast<std::uint64_t>((firstExample + n) * indices));
  });
}

void dropout(const Tensor& x, Tensor& y, double rate, const RandomStream& random, const Tensor& position,
             Context& context) {
  const auto* const at = position.data<std::int64_t>();
  cpu::dropout(x, y, rate, random.inEpoch(at[0]), at[1], context);
}

}  // namespace muster::cpu
