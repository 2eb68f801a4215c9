#include "muster/core/ops/upsample2d.h"

#include <algorithm>

#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/backend/cpu/simd.h"
#include "muster/core/backend/planes.h"
#include "muster/core/backend/taps.h"

namespace muster::cpu {
namespace {

/// One direction of an image: its size, and the enlarged size.
struct Axis {
  std::int64_t size, factor;
};

[[gnu::always_inline]] inline Taps tapsAt(Axis axis, std::int64_t output) {
  return muster::tapsAt(axis.size, axis.factor, output);
}

struct NearestRule {
  [[gnu::always_inline]] static void forward(const float* x, float* y, Axis h, Axis w, std::int64_t lanes) {
    const std::int64_t wide = w.size * w.factor * lanes;
    for (std::int64_t row = 0; row < h.size * h.factor; ++row)
      for (std::int64_t column = 0; column < w.size * w.factor; ++column) {
        const float* from = x + (row / h.factor * w.size + column / w.factor) * lanes;
        float* to = y + row * wide + column * lanes;
        for (std::int64_t i = 0; i < lanes; ++i) to[i] = from[i];
      }
  }

  /// Adds to gradX, which must be zero initially.
  [[gnu::always_inline]] static void backward(const float* gradY, float* gradX, Axis h, Axis w,
                                              std::int64_t lanes) {
    const std::int64_t wide = w.size * w.factor * lanes;
    for (std::int64_t row = 0; row < h.size * h.factor; ++row)
      for (std::int64_t column = 0; column < w.size * w.factor; ++column) {
        const float* from = gradY + row * wide + column * lanes;
        float* to = gradX + (row / h.factor * w.size + column / w.factor) * lanes;
        MUSTER_INDEPENDENT_ITERATIONS
        for (std::int64_t i = 0; i < lanes; ++i) to[i] += from[i];
      }
  }
};

struct BilinearRule {
  [[gnu::always_inline]] static void forward(const float* x, float* y, Axis h, Axis w, std::int64_t lanes) {
    for (std::int64_t row = 0; row < h.size * h.factor; ++row) {
      const Taps v = tapsAt(h, row);
      const float *upper = x + v.first * w.size * lanes, *lower = x + v.second * w.size * lanes;
      for (std::int64_t column = 0; column < w.size * w.factor; ++column, y += lanes) {
        const Taps u = tapsAt(w, column);
        const float *a = upper + u.first * lanes, *b = upper + u.second * lanes;
        const float *c = lower + u.first * lanes, *d = lower + u.second * lanes;
        MUSTER_INDEPENDENT_ITERATIONS
        for (std::int64_t i = 0; i < lanes; ++i)
          y[i] = v.firstShare * (u.firstShare * a[i] + u.secondShare * b[i]) +
                 v.secondShare * (u.firstShare * c[i] + u.secondShare * d[i]);
      }
    }
  }

  /// Adds to gradX, which must be zero initially. Adds the four contributions separately, because at an edge
  /// both neighbours are the same pixel.
  [[gnu::always_inline]] static void backward(const float* gradY, float* gradX, Axis h, Axis w,
                                              std::int64_t lanes) {
    const auto add = [lanes](float* to, const float* from, float share) __attribute__((always_inline)) {
      MUSTER_INDEPENDENT_ITERATIONS
      for (std::int64_t i = 0; i < lanes; ++i) to[i] += share * from[i];
    };
    for (std::int64_t row = 0; row < h.size * h.factor; ++row) {
      const Taps v = tapsAt(h, row);
      float *upper = gradX + v.first * w.size * lanes, *lower = gradX + v.second * w.size * lanes;
      for (std::int64_t column = 0; column < w.size * w.factor; ++column, gradY += lanes) {
        const Taps u = tapsAt(w, column);
        add(upper + u.first * lanes, gradY, v.firstShare * u.firstShare);
        add(upper + u.second * lanes, gradY, v.firstShare * u.secondShare);
        add(lower + u.first * lanes, gradY, v.secondShare * u.firstShare);
        add(lower + u.second * lanes, gradY, v.secondShare * u.secondShare);
      }
    }
  }
};

// If there is one lane, or a block's number of lanes, the compiler knows that number.

template <typename Rule>
[[gnu::always_inline]] inline void forwardPlane(const float* x, float* y, Axis h, Axis w,
                                                std::int64_t lanes) {
  if (lanes == kLayoutBlock) return Rule::forward(x, y, h, w, kLayoutBlock);
  if (lanes == 1) return Rule::forward(x, y, h, w, 1);
  Rule::forward(x, y, h, w, lanes);
}

template <typename Rule>
[[gnu::always_inline]] inline void backwardPlane(const float* gradY, float* gradX, Axis h, Axis w,
                                                 std::int64_t lanes) {
  if (lanes == kLayoutBlock) return Rule::backward(gradY, gradX, h, w, kLayoutBlock);
  if (lanes == 1) return Rule::backward(gradY, gradX, h, w, 1);
  Rule::backward(gradY, gradX, h, w, lanes);
}

/// Calls f(plane of the image, plane of the enlarged image, height, width, lanes) for each plane.
template <typename From, typename To, typename F>
void forEachPlane(const Tensor& image, const Tensor& enlarged, From* small, To* large, Context& context,
                  F f) {
  const Planes planes = planesOf(image.shape(), image.layout());
  const Axis h{image.shape()[2], enlarged.shape()[2] / image.shape()[2]};
  const Axis w{image.shape()[3], enlarged.shape()[3] / image.shape()[3]};
  const std::int64_t elements = h.size * w.size * planes.lanes;
  parallelFor(context, planes.count, 1, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p)
      f(small + p * elements, large + p * elements * h.factor * w.factor, h, w, planes.lanes);
  });
}

template <typename Rule>
void forward(const Tensor& x, Tensor& y, Context& context) {
  forEachPlane(x, y, static_cast<const float*>(x.data<float>()), y.data<float>(), context,
               [](const float* from, float* to, Axis h, Axis w, std::int64_t lanes) {
                 dispatch<forwardPlane<Rule>>(from, to, h, w, lanes);
               });
}

template <typename Rule>
void backward(const Tensor& gradY, Tensor& gradX, Context& context) {
  forEachPlane(gradX, gradY, gradX.data<float>(), static_cast<const float*>(gradY.data<float>()), context,
               [](float* to, const float* from, Axis h, Axis w, std::int64_t lanes) {
                 std::fill_n(to, h.size * w.size * lanes, 0.0f);
                 dispatch<backwardPlane<Rule>>(from, to, h, w, lanes);
               });
}

}  // namespace

void upsample2d(UpsampleMode mode, const Tensor& x, Tensor& y, Context& context) {
  if (mode == UpsampleMode::Nearest) return forward<NearestRule>(x, y, context);
  forward<BilinearRule>(x, y, context);
}

void upsample2dBackward(UpsampleMode mode, const Tensor& gradY, Tensor& gradX, Context& context) {
  if (mode == UpsampleMode::Nearest) return backward<NearestRule>(gradY, gradX, context);
  backward<BilinearRule>(gradY, gradX, context);
}

}  // namespace muster::cpu
