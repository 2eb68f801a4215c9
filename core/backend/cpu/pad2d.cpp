#include "muster/core/ops/pad2d.h"

#include <algorithm>

#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/backend/planes.h"

namespace muster::cpu {

void pad2d(const Tensor& x, const Padding2d& padding, Tensor& y, Context& context) {
  const Planes planes = planesOf(x.shape(), x.layout());
  const std::int64_t height = x.shape()[2], row = x.shape()[3] * planes.lanes;
  const auto [top, bottom, left, right] = padding;
  const std::int64_t before = left * planes.lanes, after = right * planes.lanes, wide = before + row + after;
  const float* from = x.data<float>();
  float* to = y.data<float>();
  parallelFor(context, planes.count, 1,
              [=, top = top, bottom = bottom](std::int64_t begin, std::int64_t end) {
                float* out = to + begin * (top + height + bottom) * wide;
                for (std::int64_t p = begin; p < end; ++p) {
                  out = std::fill_n(out, top * wide, 0.0f);
                  for (std::int64_t h = 0; h < height; ++h) {
                    out = std::fill_n(out, before, 0.0f);
                    out = std::copy_n(from + (p * height + h) * row, row, out);
                    out = std::fill_n(out, after, 0.0f);
                  }
                  out = std::fill_n(out, bottom * wide, 0.0f);
                }
              });
}

void pad2dBackward(const Tensor& gradY, const Padding2d& padding, Tensor& gradX, Context& context) {
  const Planes planes = planesOf(gradX.shape(), gradX.layout());
  const std::int64_t height = gradX.shape()[2], row = gradX.shape()[3] * planes.lanes;
  const std::int64_t wide = gradY.shape()[3] * planes.lanes, plane = gradY.shape()[2] * wide;
  const std::int64_t first = padding[0] * wide + padding[2] * planes.lanes;
  const float* from = gradY.data<float>();
  float* to = gradX.data<float>();
  parallelFor(context, planes.count, 1, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p)
      for (std::int64_t h = 0; h < height; ++h)
        std::copy_n(from + p * plane + first + h * wide, row, to + (p * height + h) * row);
  });
}

}  // namespace muster::cpu
