#include "muster/core/ops/sequence.h"

#include <algorithm>

#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/backend/cpu/simd.h"

namespace muster::cpu {
namespace {

/// One sequence of a batch: its steps, real or padding.
struct Steps {
  const float* mask;  // null: all are real
  std::int64_t count;

  bool real(std::int64_t t) const { return !mask || mask[t] != 0; }
  std::int64_t realCount() const {
    return mask ? std::count_if(mask, mask + count, [](float m) { return m != 0; }) : count;
  }
  /// -1 if no step is real.
  std::int64_t last() const {
    std::int64_t t = count - 1;
    while (t >= 0 && !real(t)) --t;
    return t;
  }
};

/// Calls f(example, its steps) for each sequence of [N, T, F].
template <typename F>
void forEachSequence(const Tensor& sequences, const Tensor& mask, Context& context, F f) {
  const std::int64_t steps = sequences.shape()[1];
  const float* real = mask.defined() ? mask.data<float>() : nullptr;
  parallelFor(context, sequences.shape()[0], 4, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n) f(n, Steps{real ? real + n * steps : nullptr, steps});
  });
}

[[gnu::always_inline]] inline void addTo(float* to, const float* from, std::int64_t n) {
  MUSTER_INDEPENDENT_ITERATIONS
  for (std::int64_t i = 0; i < n; ++i) to[i] += from[i];
}
[[gnu::always_inline]] inline void divideTo(float* to, const float* from, float divisor, std::int64_t n) {
  MUSTER_INDEPENDENT_ITERATIONS
  for (std::int64_t i = 0; i < n; ++i) to[i] = from[i] / divisor;
}

}  // namespace

void maskSteps(const Tensor& x, const Tensor& mask, Tensor& y, Context& context) {
  const std::int64_t steps = x.shape()[1], features = x.shape()[2];
  const float* from = x.data<float>();
  float* to = y.data<float>();
  forEachSequence(x, mask, context, [=](std::int64_t n, const Steps& s) {
    for (std::int64_t t = 0; t < steps; ++t) {
      const std::int64_t at = (n * steps + t) * features;
      if (!s.real(t))
        std::fill_n(to + at, features, 0.0f);
      else if (from != to)
        std::copy_n(from + at, features, to + at);
    }
  });
}

void lastStepForward(const Tensor& x, const Tensor& mask, Tensor& y, Context& context) {
  const std::int64_t steps = x.shape()[1], features = x.shape()[2];
  const float* from = x.data<float>();
  float* to = y.data<float>();
  forEachSequence(x, mask, context, [=](std::int64_t n, const Steps& s) {
    if (const std::int64_t t = s.last(); t >= 0)
      std::copy_n(from + (n * steps + t) * features, features, to + n * features);
    else
      std::fill_n(to + n * features, features, 0.0f);
  });
}

void lastStepBackward(const Tensor& gradY, const Tensor& mask, Tensor& gradX, Context& context) {
  const std::int64_t steps = gradX.shape()[1], features = gradX.shape()[2];
  const float* from = gradY.data<float>();
  float* to = gradX.data<float>();
  forEachSequence(gradX, mask, context, [=](std::int64_t n, const Steps& s) {
    std::fill_n(to + n * steps * features, steps * features, 0.0f);
    if (const std::int64_t t = s.last(); t >= 0)
      std::copy_n(from + n * features, features, to + (n * steps + t) * features);
  });
}

void meanOverTimeForward(const Tensor& x, const Tensor& mask, Tensor& y, Context& context) {
  const std::int64_t steps = x.shape()[1], features = x.shape()[2];
  const float* from = x.data<float>();
  float* to = y.data<float>();
  forEachSequence(x, mask, context, [=](std::int64_t n, const Steps& s) {
    float* mean = to + n * features;
    std::fill_n(mean, features, 0.0f);
    const std::int64_t count = s.realCount();
    if (count == 0) return;
    for (std::int64_t t = 0; t < steps; ++t)
      if (s.real(t)) dispatch<addTo>(mean, from + (n * steps + t) * features, features);
    dispatch<divideTo>(mean, mean, static_cast<float>(count), features);
  });
}

void meanOverTimeBackward(const Tensor& gradY, const Tensor& mask, Tensor& gradX, Context& context) {
  const std::int64_t steps = gradX.shape()[1], features = gradX.shape()[2];
  const float* from = gradY.data<float>();
  float* to = gradX.data<float>();
  forEachSequence(gradX, mask, context, [=](std::int64_t n, const Steps& s) {
    const auto count = static_cast<float>(s.realCount());
    for (std::int64_t t = 0; t < steps; ++t) {
      float* row = to + (n * steps + t) * features;
      if (s.real(t))
        dispatch<divideTo>(row, from + n * features, count, features);
      else
        std::fill_n(row, features, 0.0f);
    }
  });
}

}  // namespace muster::cpu
