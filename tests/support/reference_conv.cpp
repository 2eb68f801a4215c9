#include "tests/support/reference_ops.h"

namespace muster::test::reference {
namespace {

/// Calls f(n, o, oh, ow, c, wc, kh, kw, ih, iw) for every product of a convolution except those with padding:
/// c is the input's channel, wc the weight's.
template <typename F>
void forEachProduct(const Conv2dShape& s, F f) {
  const auto outSize = [&](std::int64_t size, std::size_t axis) {
    return (size + 2 * s.padding[axis] - s.dilation[axis] * (s.kernel[axis] - 1) - 1) / s.stride[axis] + 1;
  };
  const std::int64_t outHeight = outSize(s.height, 0), outWidth = outSize(s.width, 1);
  const std::int64_t inOfGroup = s.inChannels / s.groups, outOfGroup = s.outChannels / s.groups;
  for (std::int64_t n = 0; n < s.batch; ++n)
    for (std::int64_t o = 0; o < s.outChannels; ++o)
      for (std::int64_t oh = 0; oh < outHeight; ++oh)
        for (std::int64_t ow = 0; ow < outWidth; ++ow)
          for (std::int64_t wc = 0; wc < inOfGroup; ++wc) {
            const std::int64_t c = o / outOfGroup * inOfGroup + wc;
            for (std::int64_t kh = 0; kh < s.kernel[0]; ++kh)
              for (std::int64_t kw = 0; kw < s.kernel[1]; ++kw) {
                const std::int64_t ih = oh * s.stride[0] - s.padding[0] + kh * s.dilation[0];
                const std::int64_t iw = ow * s.stride[1] - s.padding[1] + kw * s.dilation[1];
                if (ih >= 0 && ih < s.height && iw >= 0 && iw < s.width)
                  f(n, o, oh, ow, c, wc, kh, kw, ih, iw);
              }
          }
}

using I = std::int64_t;

/// Calls f(index of a value, its channel) for all of [N, C, H, W].
template <typename F>
void forEachPixel(const Shape& shape, F f) {
  const I plane = shape[2] * shape[3];
  for (I i = 0; i < shape.elements(); ++i) f(i, i / plane % shape[1]);
}

void addBias(Array& y, const Array& bias) {
  forEachPixel(y.shape, [&](I i, I c) { y.at(i) += bias.at(c); });
}

Array biasGradient(const Array& gradY) {
  Array gradient({gradY.shape[1]});
  forEachPixel(gradY.shape, [&](I i, I c) { gradient.at(c) += gradY.at(i); });
  return gradient;
}

}  // namespace

Array conv2d(const Conv2dShape& shape, const Array& x, const Array& weight, const Array& bias) {
  Array y(shape.output());
  addBias(y, bias);
  forEachProduct(shape, [&](I n, I o, I oh, I ow, I c, I wc, I kh, I kw, I ih, I iw) {
    y.at(n, o, oh, ow) += x.at(n, c, ih, iw) * weight.at(o, wc, kh, kw);
  });
  return y;
}

Array conv2dBackwardData(const Conv2dShape& shape, const Array& gradY, const Array& weight) {
  Array gradX(shape.input());
  forEachProduct(shape, [&](I n, I o, I oh, I ow, I c, I wc, I kh, I kw, I ih, I iw) {
    gradX.at(n, c, ih, iw) += gradY.at(n, o, oh, ow) * weight.at(o, wc, kh, kw);
  });
  return gradX;
}

std::pair<Array, Array> conv2dBackwardWeights(const Conv2dShape& shape, const Array& x, const Array& gradY) {
  Array gradWeight(shape.weight());
  forEachProduct(shape, [&](I n, I o, I oh, I ow, I c, I wc, I kh, I kw, I ih, I iw) {
    gradWeight.at(o, wc, kh, kw) += gradY.at(n, o, oh, ow) * x.at(n, c, ih, iw);
  });
  return {gradWeight, biasGradient(gradY)};
}

/// By its definition: the convolution's gradient by its input.
Array convTranspose2d(const ConvTranspose2dShape& s, const Array& x, const Array& weight, const Array& bias) {
  Array y = conv2dBackwardData(s.convolution(), x, weight);
  addBias(y, bias);
  return y;
}

ConvTranspose2dGradients convTranspose2dBackward(const ConvTranspose2dShape& s, const Array& x,
                                                 const Array& weight, const Array& gradY) {
  return {conv2d(s.convolution(), gradY, weight, Array({s.inChannels})),
          conv2dBackwardWeights(s.convolution(), gradY, x).first, biasGradient(gradY)};
}

Array pad2d(const Array& x, const Padding2d& padding) {
  const auto [top, bottom, left, right] = padding;
  Array y({x.shape[0], x.shape[1], top + x.shape[2] + bottom, left + x.shape[3] + right});
  for (I n = 0; n < x.shape[0]; ++n)
    for (I c = 0; c < x.shape[1]; ++c)
      for (I h = 0; h < x.shape[2]; ++h)
        for (I w = 0; w < x.shape[3]; ++w) y.at(n, c, h + top, w + left) = x.at(n, c, h, w);
  return y;
}

namespace {

/// The weight of input pixel `input` (of `small`) in output pixel `output` (of `large`), in one dimension.
double shareOf(UpsampleMode mode, I small, I large, I input, I output) {
  const double scale = static_cast<double>(large) / static_cast<double>(small);
  const auto place = static_cast<double>(output);
  if (mode == UpsampleMode::Nearest) return static_cast<I>(std::floor(place / scale)) == input ? 1 : 0;
  const double centre = std::clamp((place + 0.5) / scale - 0.5, 0.0, static_cast<double>(small - 1));
  return std::max(0.0, 1 - std::abs(centre - static_cast<double>(input)));
}

/// Calls f(n, c, oh, ow, ih, iw, share) for every pixel of the larger image and every pixel of the smaller
/// image that contributes to it.
template <typename F>
void forEachShare(UpsampleMode mode, const Shape& small, const Shape& large, F f) {
  for (I oh = 0; oh < large[2]; ++oh)
    for (I ow = 0; ow < large[3]; ++ow)
      for (I ih = 0; ih < small[2]; ++ih)
        for (I iw = 0; iw < small[3]; ++iw) {
          const double share =
              shareOf(mode, small[2], large[2], ih, oh) * shareOf(mode, small[3], large[3], iw, ow);
          if (share == 0) continue;
          for (I n = 0; n < small[0]; ++n)
            for (I c = 0; c < small[1]; ++c) f(n, c, oh, ow, ih, iw, share);
        }
}

}  // namespace

Array upsample2d(UpsampleMode mode, const Array& x, std::int64_t height, std::int64_t width) {
  Array y({x.shape[0], x.shape[1], height, width});
  forEachShare(mode, x.shape, y.shape, [&](I n, I c, I oh, I ow, I ih, I iw, double share) {
    y.at(n, c, oh, ow) += share * x.at(n, c, ih, iw);
  });
  return y;
}

Array upsample2dBackward(UpsampleMode mode, const Array& gradY, std::int64_t height, std::int64_t width) {
  Array gradX({gradY.shape[0], gradY.shape[1], height, width});
  forEachShare(mode, gradX.shape, gradY.shape, [&](I n, I c, I oh, I ow, I ih, I iw, double share) {
    gradX.at(n, c, ih, iw) += share * gradY.at(n, c, oh, ow);
  });
  return gradX;
}

namespace {

/// Calls f(n, c, oh, ow, ih, iw) for every input of every window, in row-major order.
template <typename F>
void forEachTap(const Pool2dShape& s, F f) {
  const I outHeight = (s.height + 2 * s.padding[0] - s.kernel[0]) / s.stride[0] + 1;
  const I outWidth = (s.width + 2 * s.padding[1] - s.kernel[1]) / s.stride[1] + 1;
  for (I n = 0; n < s.batch; ++n)
    for (I c = 0; c < s.channels; ++c)
      for (I oh = 0; oh < outHeight; ++oh)
        for (I ow = 0; ow < outWidth; ++ow)
          for (I kh = 0; kh < s.kernel[0]; ++kh)
            for (I kw = 0; kw < s.kernel[1]; ++kw) {
              const I ih = oh * s.stride[0] - s.padding[0] + kh;
              const I iw = ow * s.stride[1] - s.padding[1] + kw;
              if (ih >= 0 && ih < s.height && iw >= 0 && iw < s.width) f(n, c, oh, ow, ih, iw);
            }
}

double kernelSize(const Pool2dShape& shape) {
  return static_cast<double>(shape.kernel[0] * shape.kernel[1]);
}

}  // namespace

Array pool2d(const Pool2dShape& shape, const Array& x) {
  Array y(shape.output());
  if (shape.kind == PoolKind::Average) {
    forEachTap(shape, [&](I n, I c, I oh, I ow, I ih, I iw) {
      y.at(n, c, oh, ow) += x.at(n, c, ih, iw) / kernelSize(shape);
    });
    return y;
  }
  for (double& value : y.values) value = -std::numeric_limits<double>::infinity();
  forEachTap(shape, [&](I n, I c, I oh, I ow, I ih, I iw) {
    double& best = y.at(n, c, oh, ow);
    const double value = x.at(n, c, ih, iw);
    if (value > best || std::isnan(value)) best = value;
  });
  return y;
}

Array pool2dBackward(const Pool2dShape& shape, const Array& x, const Array& gradY) {
  Array gradX(shape.input());
  if (shape.kind == PoolKind::Average) {
    forEachTap(shape, [&](I n, I c, I oh, I ow, I ih, I iw) {
      gradX.at(n, c, ih, iw) += gradY.at(n, c, oh, ow) / kernelSize(shape);
    });
    return gradX;
  }
  const Array y = pool2d(shape, x);
  Array given(y.shape);  // 1 once a window's gradient was assigned to an input
  forEachTap(shape, [&](I n, I c, I oh, I ow, I ih, I iw) {
    if (given.at(n, c, oh, ow) != 0 || x.at(n, c, ih, iw) != y.at(n, c, oh, ow)) return;
    given.at(n, c, oh, ow) = 1;
    gradX.at(n, c, ih, iw) += gradY.at(n, c, oh, ow);
  });
  return gradX;
}

}  // namespace muster::test::reference
