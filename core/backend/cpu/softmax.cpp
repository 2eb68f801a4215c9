#include "muster/core/backend/cpu/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "muster/core/backend/cpu/parallel.h"

namespace muster::cpu {
namespace {

/// The classes of one position: `count` floats, `stride` apart.
struct Classes {
  std::int64_t count, stride;
};

void forwardAt(const float* x, float* y, Classes c) {
  float top = -std::numeric_limits<float>::infinity();
  for (std::int64_t i = 0; i < c.count; ++i) top = std::max(top, x[i * c.stride]);
  float sum = 0;
  for (std::int64_t i = 0; i < c.count; ++i) sum += y[i * c.stride] = std::exp(x[i * c.stride] - top);
  for (std::int64_t i = 0; i < c.count; ++i) y[i * c.stride] /= sum;
}

void backwardAt(const float* y, const float* gradY, float* gradX, Classes c) {
  float dot = 0;
  for (std::int64_t i = 0; i < c.count; ++i) dot += y[i * c.stride] * gradY[i * c.stride];
  for (std::int64_t i = 0; i < c.count; ++i)
    gradX[i * c.stride] = y[i * c.stride] * (gradY[i * c.stride] - dot);
}

/// Calls f(offset of the first class, Classes) for every sample and pixel.
template <typename F>
void forEachPlace(const Tensor& tensor, Context& context, F f) {
  const Shape& shape = tensor.shape();
  const bool overTime = shape.rank() == 3;  // [N, T, F]: the features of each step
  const std::int64_t channels = overTime ? shape[2] : shape[1];
  const std::int64_t samples = overTime ? shape[0] * shape[1] : shape[0];
  const std::int64_t pixels = shape.rank() == 4 ? shape[2] * shape[3] : 1;
  parallelFor(context, samples, 16, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n)
      for (std::int64_t p = 0; p < pixels; ++p) f(n * channels * pixels + p, Classes{channels, pixels});
  });
}

}  // namespace

void softmaxForward(const Tensor& x, Tensor& y, Context& context) {
  const float* from = x.data<float>();
  float* to = y.data<float>();
  forEachPlace(x, context,
               [=](std::int64_t offset, Classes classes) { forwardAt(from + offset, to + offset, classes); });
}

void softmaxBackward(const Tensor& y, const Tensor& gradY, Tensor& gradX, Context& context) {
  const float* kept = y.data<float>();
  const float* from = gradY.data<float>();
  float* to = gradX.data<float>();
  forEachPlace(y, context, [=](std::int64_t offset, Classes classes) {
    backwardAt(kept + offset, from + offset, to + offset, classes);
  });
}

}  // namespace muster::cpu
