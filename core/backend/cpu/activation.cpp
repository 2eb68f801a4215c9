#include "muster/core/ops/activation.h"

#include <numbers>

#include "muster/core/backend/cpu/exp.h"
#include "muster/core/backend/cpu/padding.h"
#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/backend/cpu/simd.h"
#include "muster/core/backend/cpu/softmax.h"

namespace muster::cpu {
namespace {

constexpr std::int64_t kGrain = 4096;

constexpr float kInvSqrt2Pi = 0.5f * std::numbers::sqrt2_v<float> * std::numbers::inv_sqrtpi_v<float>;

// `forward` takes x; `backward` takes y (GELU: x) and gradY. The comparisons keep NaN.

struct ReluRule {
  [[gnu::always_inline]] static float forward(float x) { return x < 0.0f ? 0.0f : x; }
  [[gnu::always_inline]] static float backward(float y, float grad) { return y > 0.0f ? grad : 0.0f; }
};

struct LeakyRule {
  [[gnu::always_inline]] static float forward(float x) { return x > 0.0f ? x : kLeakySlope * x; }
  [[gnu::always_inline]] static float backward(float y, float grad) {
    return y > 0.0f ? grad : kLeakySlope * grad;
  }
};

struct TanhRule {
  [[gnu::always_inline]] static float forward(float x) { return tanh(x); }
  [[gnu::always_inline]] static float backward(float y, float grad) { return grad * (1.0f - y * y); }
};

struct SigmoidRule {
  [[gnu::always_inline]] static float forward(float x) { return sigmoid(x); }
  [[gnu::always_inline]] static float backward(float y, float grad) { return grad * y * (1.0f - y); }
};

struct GeluRule {
  [[gnu::always_inline]] static float forward(float x) { return x * normalAt(x).below; }
  [[gnu::always_inline]] static float backward(float x, float grad) {
    const Normal normal = normalAt(x);
    return grad * (normal.below + x * kInvSqrt2Pi * normal.bell);
  }
};

template <typename Rule>
[[gnu::always_inline]] inline void forwardLoop(const float* x, float* y, std::int64_t n) {
  // x and y are the same memory or do not overlap.
  MUSTER_INDEPENDENT_ITERATIONS
  for (std::int64_t i = 0; i < n; ++i) y[i] = Rule::forward(x[i]);
}
template <typename Rule>
[[gnu::always_inline]] inline void backwardLoop(const float* kept, const float* gradY, float* gradX,
                                                std::int64_t n) {
  MUSTER_INDEPENDENT_ITERATIONS
  for (std::int64_t i = 0; i < n; ++i) gradX[i] = Rule::backward(kept[i], gradY[i]);
}

template <typename Rule>
void forward(const Tensor& x, Tensor& y, Context& context) {
  const float* from = x.data<float>();
  float* to = y.data<float>();
  parallelFor(context, x.storage(), kGrain, [=](std::int64_t begin, std::int64_t end) {
    dispatch<forwardLoop<Rule>>(from + begin, to + begin, end - begin);
  });
}

template <typename Rule>
void backward(const Tensor& kept, const Tensor& gradY, Tensor& gradX, Context& context) {
  const float* value = kept.data<float>();
  const float* from = gradY.data<float>();
  float* to = gradX.data<float>();
  parallelFor(context, gradY.storage(), kGrain, [=](std::int64_t begin, std::int64_t end) {
    dispatch<backwardLoop<Rule>>(value + begin, from + begin, to + begin, end - begin);
  });
}

}  // namespace

void activationForward(Activation activation, const Tensor& x, Tensor& y, Context& context) {
  switch (activation) {
    case Activation::Identity:
      return copy(x, y);
    case Activation::ReLU:
      return forward<ReluRule>(x, y, context);
    case Activation::LeakyReLU:
      return forward<LeakyRule>(x, y, context);
    case Activation::Tanh:
      return forward<TanhRule>(x, y, context);
    case Activation::Sigmoid:
      forward<SigmoidRule>(x, y, context);
      return zeroPadding(y);  // sigmoid(0) is not 0
    case Activation::Softmax:
      return softmaxForward(x, y, context);
    case Activation::GELU:
      return forward<GeluRule>(x, y, context);
  }
}

void activationBackward(Activation activation, const Tensor& x, const Tensor& y, const Tensor& gradY,
                        Tensor& gradX, Context& context) {
  switch (activation) {
    case Activation::Identity:
      return copy(gradY, gradX);
    case Activation::ReLU:
      return backward<ReluRule>(y, gradY, gradX, context);
    case Activation::LeakyReLU:
      return backward<LeakyRule>(y, gradY, gradX, context);
    case Activation::Tanh:
      return backward<TanhRule>(y, gradY, gradX, context);
    case Activation::Sigmoid:
      return backward<SigmoidRule>(y, gradY, gradX, context);
    case Activation::Softmax:
      return softmaxBackward(y, gradY, gradX, context);
    case Activation::GELU:
      return backward<GeluRule>(x, gradY, gradX, context);
  }
}

}  // namespace muster::cpu
