#include "muster/core/ops/elementwise.h"

#include <algorithm>
#include <cstring>

#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/backend/cpu/simd.h"

namespace muster::cpu {
namespace {

constexpr std::int64_t kGrain = 1 << 14;  // minimum elements per thread

struct AddRule {
  [[gnu::always_inline]] static float of(float a, float b) { return a + b; }
};
struct SubtractRule {
  [[gnu::always_inline]] static float of(float a, float b) { return a - b; }
};
struct ProductRule {
  [[gnu::always_inline]] static float of(float a, float b) { return a * b; }
};
struct MaxRule {  // keeps the first NaN
  [[gnu::always_inline]] static float of(float a, float b) { return b > a || b != b ? b : a; }
};

// In these loops y either is the same memory as an input or does not overlap it.

template <typename Rule>
[[gnu::always_inline]] inline void binaryLoop(const float* a, const float* b, float* y, std::int64_t n) {
  MUSTER_INDEPENDENT_ITERATIONS
  for (std::int64_t i = 0; i < n; ++i) y[i] = Rule::of(a[i], b[i]);
}

[[gnu::always_inline]] inline void scaleLoop(float factor, const float* x, float* y, std::int64_t n) {
  MUSTER_INDEPENDENT_ITERATIONS
  for (std::int64_t i = 0; i < n; ++i) y[i] = factor * x[i];
}

/// Zeros the gradient where `other` is larger, or equal if `mustExceed`: the first of equal inputs counts.
[[gnu::always_inline]] inline void keepWhereGreater(const float* mine, const float* other, bool mustExceed,
                                                    float* grad, std::int64_t n) {
  MUSTER_INDEPENDENT_ITERATIONS
  for (std::int64_t i = 0; i < n; ++i) {
    const bool loses = mustExceed ? !(mine[i] > other[i]) : other[i] > mine[i];
    grad[i] = loses ? 0.0f : grad[i];
  }
}

template <typename Rule>
void binary(const Tensor& a, const Tensor& b, Tensor& y, Context& context) {
  const float *left = a.data<float>(), *right = b.data<float>();
  float* to = y.data<float>();
  parallelFor(context, y.storage(), kGrain, [=](std::int64_t begin, std::int64_t end) {
    dispatch<binaryLoop<Rule>>(left + begin, right + begin, to + begin, end - begin);
  });
}

template <typename Rule>
void fold(std::span<const Tensor> x, Tensor& y, Context& context) {
  if (x.size() == 1) return copy(x.front(), y, context);
  binary<Rule>(x[0], x[1], y, context);
  for (const auto& next : x.subspan(2)) binary<Rule>(y, next, y, context);
}

void productBackward(std::span<const Tensor> x, std::size_t input, const Tensor& gradY, Tensor& gradX,
                     Context& context) {
  copy(gradY, gradX, context);
  for (std::size_t i = 0; i < x.size(); ++i)
    if (i != input) binary<ProductRule>(gradX, x[i], gradX, context);
}

void maxBackward(std::span<const Tensor> x, std::size_t input, const Tensor& gradY, Tensor& gradX,
                 Context& context) {
  copy(gradY, gradX, context);
  const float* mine = x[input].data<float>();
  float* grad = gradX.data<float>();
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (i == input) continue;
    const float* other = x[i].data<float>();
    const bool mustExceed = i < input;
    parallelFor(context, gradX.storage(), kGrain, [=](std::int64_t begin, std::int64_t end) {
      dispatch<keepWhereGreater>(mine + begin, other + begin, mustExceed, grad + begin, end - begin);
    });
  }
}

}  // namespace

void scale(double factor, const Tensor& x, Tensor& y, Context& context) {
  const float* from = x.data<float>();
  float* to = y.data<float>();
  const auto by = static_cast<float>(factor);
  parallelFor(context, y.storage(), kGrain, [=](std::int64_t begin, std::int64_t end) {
    dispatch<scaleLoop>(by, from + begin, to + begin, end - begin);
  });
}

void combine(Combination combination, std::span<const Tensor> x, Tensor& y, Context& context) {
  switch (combination) {
    case Combination::Add:
      return fold<AddRule>(x, y, context);
    case Combination::Subtract:
      return fold<SubtractRule>(x, y, context);
    case Combination::Product:
      return fold<ProductRule>(x, y, context);
    case Combination::Average:
      fold<AddRule>(x, y, context);
      return cpu::scale(1.0 / static_cast<double>(x.size()), y, y, context);
    case Combination::Max:
      return fold<MaxRule>(x, y, context);
  }
}

void combineBackward(Combination combination, std::span<const Tensor> x, std::size_t input,
                     const Tensor& gradY, Tensor& gradX, Context& context) {
  switch (combination) {
    case Combination::Add:
      return copy(gradY, gradX, context);
    case Combination::Subtract:
      return cpu::scale(input == 0 ? 1 : -1, gradY, gradX, context);
    case Combination::Product:
      return productBackward(x, input, gradY, gradX, context);
    case Combination::Average:
      return cpu::scale(1.0 / static_cast<double>(x.size()), gradY, gradX, context);
    case Combination::Max:
      return maxBackward(x, input, gradY, gradX, context);
  }
}

void copyRange(const Tensor& x, std::int64_t from, Tensor& y, std::int64_t to, std::int64_t count, int axis,
               Context& context) {
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= x.shape()[i];
  for (int i = axis + 1; i < x.shape().rank(); ++i) inner *= x.shape()[i];
  const std::int64_t rowX = x.shape()[axis] * inner, rowY = y.shape()[axis] * inner, run = count * inner;
  if (run == 0) return;
  const float* source = x.data<float>() + from * inner;
  float* target = y.data<float>() + to * inner;
  const std::int64_t grain = std::max<std::int64_t>(1, kGrain / run);
  parallelFor(context, outer, grain, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      std::memcpy(target + i * rowY, source + i * rowX, static_cast<std::size_t>(run) * sizeof(float));
  });
}

}  // namespace muster::cpu
