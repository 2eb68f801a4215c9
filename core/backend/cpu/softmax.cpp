#include "muster/core/backend/cpu/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "muster/core/backend/cpu/exp.h"
#include "muster/core/backend/cpu/lanes.h"
#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/backend/cpu/simd.h"

namespace muster::cpu {
namespace {

/// One row of adjacent classes.
[[gnu::always_inline]] inline void forwardRow(const float* x, float* y, std::int64_t classes) {
  constexpr float kLowest = -3.4028235e38f;
  const float top = largestOf(
      classes, kLowest, [=](std::int64_t i) __attribute__((always_inline)) { return x[i]; });
  MUSTER_INDEPENDENT_ITERATIONS
  for (std::int64_t i = 0; i < classes; ++i) y[i] = expOfNegative(x[i] - top);
  const auto sum = sumOf<float>(
      classes, [=](std::int64_t i) __attribute__((always_inline)) { return y[i]; });
  for (std::int64_t i = 0; i < classes; ++i) y[i] /= sum;
}

[[gnu::always_inline]] inline void backwardRow(const float* y, const float* gradY, float* gradX,
                                               std::int64_t classes) {
  const auto dot = sumOf<float>(
      classes, [=](std::int64_t i) __attribute__((always_inline)) { return y[i] * gradY[i]; });
  MUSTER_INDEPENDENT_ITERATIONS
  for (std::int64_t i = 0; i < classes; ++i) gradX[i] = y[i] * (gradY[i] - dot);
}

/// The classes of one pixel are `stride` floats apart.
void forwardPixel(const float* x, float* y, std::int64_t classes, std::int64_t stride) {
  float top = -std::numeric_limits<float>::infinity();
  for (std::int64_t i = 0; i < classes; ++i) top = std::max(top, x[i * stride]);
  float sum = 0;
  for (std::int64_t i = 0; i < classes; ++i) sum += y[i * stride] = std::exp(x[i * stride] - top);
  for (std::int64_t i = 0; i < classes; ++i) y[i * stride] /= sum;
}

void backwardPixel(const float* y, const float* gradY, float* gradX, std::int64_t classes,
                   std::int64_t stride) {
  float dot = 0;
  for (std::int64_t i = 0; i < classes; ++i) dot += y[i * stride] * gradY[i * stride];
  for (std::int64_t i = 0; i < classes; ++i) gradX[i * stride] = y[i * stride] * (gradY[i * stride] - dot);
}

/// Calls row(offset, classes) for each row of classes, or pixel(offset, classes, stride) for each pixel.
template <typename Row, typename Pixel>
void forEachPlace(const Tensor& tensor, Context& context, Row row, Pixel pixel) {
  const Shape& shape = tensor.shape();
  const bool overTime = shape.rank() == 3;  // [N, T, F]: the features of each step
  const std::int64_t channels = overTime ? shape[2] : shape[1];
  const std::int64_t samples = overTime ? shape[0] * shape[1] : shape[0];
  const std::int64_t pixels = shape.rank() == 4 ? shape[2] * shape[3] : 1;
  parallelFor(context, samples, 16, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n) {
      if (pixels == 1)
        row(n * channels, channels);
      else
        for (std::int64_t p = 0; p < pixels; ++p) pixel(n * channels * pixels + p, channels, pixels);
    }
  });
}

}  // namespace

void softmaxForward(const Tensor& x, Tensor& y, Context& context) {
  const float* from = x.data<float>();
  float* to = y.data<float>();
  forEachPlace(
      x, context,
      [=](std::int64_t at, std::int64_t classes) { dispatch<forwardRow>(from + at, to + at, classes); },
      [=](std::int64_t at, std::int64_t classes, std::int64_t stride) {
        forwardPixel(from + at, to + at, classes, stride);
      });
}

void softmaxBackward(const Tensor& y, const Tensor& gradY, Tensor& gradX, Context& context) {
  const float* kept = y.data<float>();
  const float* from = gradY.data<float>();
  float* to = gradX.data<float>();
  forEachPlace(
      y, context,
      [=](std::int64_t at, std::int64_t classes) {
        dispatch<backwardRow>(kept + at, from + at, to + at, classes);
      },
      [=](std::int64_t at, std::int64_t classes, std::int64_t stride) {
        backwardPixel(kept + at, from + at, to + at, classes, stride);
      });
}

}  // namespace muster::cpu
