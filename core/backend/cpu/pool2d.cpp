#include "muster/core/ops/pool2d.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/backend/cpu/simd.h"
#include "muster/core/base/error.h"

// Every layout is seen as [planes][H][W][inner]: what pooling does not mix lies outside or inside the image.
// One set of loops, vectorised over `inner`, serves them all.

namespace muster::cpu {
namespace {

/// One plane's sizes and its windows, already cut to the image: what the kernels read.
struct Geometry {
  std::int64_t inHeight, inWidth, outHeight, outWidth, inner;
  std::int64_t kernelHeight, kernelWidth, strideHeight, strideWidth, padHeight, padWidth;
};

/// The part of a window that lies in the image, along one axis.
struct Span {
  std::int64_t begin, end;
};

[[gnu::always_inline]] inline Span windowOf(std::int64_t out, std::int64_t stride, std::int64_t pad,
                                            std::int64_t kernel, std::int64_t in) {
  const std::int64_t begin = out * stride - pad;
  return {begin < 0 ? 0 : begin, begin + kernel < in ? begin + kernel : in};
}

constexpr std::int64_t kLanes = 16;

/// The largest value of one window for `n` neighbours in `inner`, and where in the plane it is. NaN wins, and
/// of equal values the first.
template <std::int64_t N>
[[gnu::always_inline]] inline void maxWindow(const float* x, const Geometry& g, Span rows, Span columns,
                                             std::int64_t n, float* y, std::int32_t* where) {
  const std::int64_t count = N > 0 ? N : n;
  float best[kLanes];
  std::int32_t at[kLanes];
  const std::int64_t first = rows.begin * g.inWidth + columns.begin;
  for (std::int64_t i = 0; i < count; ++i) {
    best[i] = x[first * g.inner + i];
    at[i] = static_cast<std::int32_t>(first);
  }
  for (std::int64_t row = rows.begin; row < rows.end; ++row)
    for (std::int64_t column = columns.begin; column < columns.end; ++column) {
      const std::int64_t place = row * g.inWidth + column;
      const float* from = x + place * g.inner;
      const auto index = static_cast<std::int32_t>(place);
      for (std::int64_t i = 0; i < count; ++i) {
        const bool wins = from[i] > best[i] || from[i] != from[i];
        best[i] = wins ? from[i] : best[i];
        at[i] = wins ? index : at[i];
      }
    }
  for (std::int64_t i = 0; i < count; ++i) {
    y[i] = best[i];
    where[i] = at[i];
  }
}

[[gnu::always_inline]] inline void maxForward(const float* x, float* y, std::int32_t* where, Geometry g) {
  for (std::int64_t oy = 0; oy < g.outHeight; ++oy) {
    const Span rows = windowOf(oy, g.strideHeight, g.padHeight, g.kernelHeight, g.inHeight);
    for (std::int64_t ox = 0; ox < g.outWidth; ++ox) {
      const Span columns = windowOf(ox, g.strideWidth, g.padWidth, g.kernelWidth, g.inWidth);
      std::int64_t i = 0;
      for (; i + kLanes <= g.inner; i += kLanes, y += kLanes, where += kLanes)
        maxWindow<kLanes>(x + i, g, rows, columns, kLanes, y, where);
      if (const std::int64_t rest = g.inner - i; rest > 0) {
        maxWindow<0>(x + i, g, rows, columns, rest, y, where);
        y += rest;
        where += rest;
      }
    }
  }
}

/// gradX += gradY where the window's maximum was. Written per window position, so that lanes stay together.
[[gnu::always_inline]] inline void maxBackward(const float* gradY, const std::int32_t* where, float* gradX,
                                               Geometry g) {
  for (std::int64_t oy = 0; oy < g.outHeight; ++oy) {
    const Span rows = windowOf(oy, g.strideHeight, g.padHeight, g.kernelHeight, g.inHeight);
    for (std::int64_t ox = 0; ox < g.outWidth; ++ox, gradY += g.inner, where += g.inner) {
      const Span columns = windowOf(ox, g.strideWidth, g.padWidth, g.kernelWidth, g.inWidth);
      for (std::int64_t row = rows.begin; row < rows.end; ++row)
        for (std::int64_t column = columns.begin; column < columns.end; ++column) {
          const std::int64_t place = row * g.inWidth + column;
          const auto index = static_cast<std::int32_t>(place);
          float* to = gradX + place * g.inner;
          for (std::int64_t i = 0; i < g.inner; ++i) to[i] += where[i] == index ? gradY[i] : 0.0f;
        }
    }
  }
}

[[gnu::always_inline]] inline void averageForward(const float* x, float* y, Geometry g) {
  const float scale = 1.0f / static_cast<float>(g.kernelHeight * g.kernelWidth);
  for (std::int64_t oy = 0; oy < g.outHeight; ++oy) {
    const Span rows = windowOf(oy, g.strideHeight, g.padHeight, g.kernelHeight, g.inHeight);
    for (std::int64_t ox = 0; ox < g.outWidth; ++ox, y += g.inner) {
      const Span columns = windowOf(ox, g.strideWidth, g.padWidth, g.kernelWidth, g.inWidth);
      for (std::int64_t i = 0; i < g.inner; ++i) y[i] = 0;
      for (std::int64_t row = rows.begin; row < rows.end; ++row)
        for (std::int64_t column = columns.begin; column < columns.end; ++column) {
          const float* from = x + (row * g.inWidth + column) * g.inner;
          for (std::int64_t i = 0; i < g.inner; ++i) y[i] += from[i];
        }
      for (std::int64_t i = 0; i < g.inner; ++i) y[i] *= scale;
    }
  }
}

[[gnu::always_inline]] inline void averageBackward(const float* gradY, float* gradX, Geometry g) {
  const float scale = 1.0f / static_cast<float>(g.kernelHeight * g.kernelWidth);
  for (std::int64_t oy = 0; oy < g.outHeight; ++oy) {
    const Span rows = windowOf(oy, g.strideHeight, g.padHeight, g.kernelHeight, g.inHeight);
    for (std::int64_t ox = 0; ox < g.outWidth; ++ox, gradY += g.inner) {
      const Span columns = windowOf(ox, g.strideWidth, g.padWidth, g.kernelWidth, g.inWidth);
      for (std::int64_t row = rows.begin; row < rows.end; ++row)
        for (std::int64_t column = columns.begin; column < columns.end; ++column) {
          float* to = gradX + (row * g.inWidth + column) * g.inner;
          for (std::int64_t i = 0; i < g.inner; ++i) to[i] += scale * gradY[i];
        }
    }
  }
}

class LoopPool2dPlan final : public Pool2dPlan {
 public:
  LoopPool2dPlan(const Pool2dShape& shape, Layout layout, Context& context)
      : kind_(shape.kind),
        layout_(layout),
        context_(context),
        input_(shape.input()),
        output_(shape.output()) {
    geometry_ = {.inHeight = shape.height,
                 .inWidth = shape.width,
                 .outHeight = output_[2],
                 .outWidth = output_[3],
                 .inner = innerOf(shape, layout),
                 .kernelHeight = shape.kernel[0],
                 .kernelWidth = shape.kernel[1],
                 .strideHeight = shape.stride[0],
                 .strideWidth = shape.stride[1],
                 .padHeight = shape.padding[0],
                 .padWidth = shape.padding[1]};
    planes_ = storageElements(input_, layout) / inPlane();
    if (kind_ == PoolKind::Max) where_.resize(static_cast<std::size_t>(planes_ * outPlane()));
  }

  Layout layout() const override { return layout_; }

  void forward(const Tensor& x, Tensor& y) override {
    expect("x", x, input_);
    expect("y", y, output_);
    const float* from = x.data<float>();
    float* to = y.data<float>();
    parallelFor(context_, planes_, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t p = begin; p < end; ++p) {
        if (kind_ == PoolKind::Max)
          dispatch<maxForward>(from + p * inPlane(), to + p * outPlane(), where_.data() + p * outPlane(),
                               geometry_);
        else
          dispatch<averageForward>(from + p * inPlane(), to + p * outPlane(), geometry_);
      }
    });
  }

  void backward(const Tensor& gradY, Tensor& gradX) override {
    expect("gradY", gradY, output_);
    expect("gradX", gradX, input_);
    const float* from = gradY.data<float>();
    float* to = gradX.data<float>();
    parallelFor(context_, planes_, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t p = begin; p < end; ++p) {
        float* plane = to + p * inPlane();
        std::memset(plane, 0, static_cast<std::size_t>(inPlane()) * sizeof(float));
        if (kind_ == PoolKind::Max) {
          const std::int32_t* where = where_.data() + p * outPlane();
          dispatch<maxBackward>(from + p * outPlane(), where, plane, geometry_);
        } else {
          dispatch<averageBackward>(from + p * outPlane(), plane, geometry_);
        }
      }
    });
  }

 private:
  static std::int64_t innerOf(const Pool2dShape& shape, Layout layout) {
    if (layout == Layout::RowMajor) return 1;
    return layout == Layout::ChannelsLast ? shape.channels : kLayoutBlock;
  }

  std::int64_t inPlane() const { return geometry_.inHeight * geometry_.inWidth * geometry_.inner; }
  std::int64_t outPlane() const { return geometry_.outHeight * geometry_.outWidth * geometry_.inner; }

  void expect(std::string_view name, const Tensor& tensor, const Shape& shape) const {
    if (tensor.shape() == shape && tensor.layout() == layout_ && tensor.dtype() == DType::Float32) return;
    throw InvalidArgument(fmt::format("pool2d: {} is {}, expected float32 {} in {}", name, tensor.toString(),
                                      shape.toString(), nameOf(layout_)));
  }

  PoolKind kind_;
  Layout layout_;
  Context& context_;
  Shape input_, output_;
  Geometry geometry_{};
  std::int64_t planes_ = 0;
  std::vector<std::int32_t> where_;  // [plane][out position][inner]: the maximum's place in its plane
};

}  // namespace

std::unique_ptr<Pool2dPlan> planPool2d(const Pool2dShape& shape, Layout layout, Context& context) {
  return std::make_unique<LoopPool2dPlan>(shape, layout, context);
}

}  // namespace muster::cpu
