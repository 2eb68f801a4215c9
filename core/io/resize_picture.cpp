#include <algorithm>
#include <cmath>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/io/picture.h"

namespace muster {
namespace {

constexpr int kFractionBits = 22;  // of the weights

/// The pixels that one pixel of the result is made of, and their weights, whose sum is about 1 <<
/// kFractionBits.
struct Taps {
  std::int64_t first = 0;
  std::vector<std::int32_t> weights = {};
};

/// A filter per pixel of the result. The triangle is as wide as a pixel of the result, at least as one of
/// the source.
std::vector<Taps> tapsOf(std::int64_t from, std::int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to), width = std::max(scale, 1.0);
  std::vector<Taps> all(static_cast<std::size_t>(to));
  std::vector<double> weights;
  for (std::int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const auto first = std::max<std::int64_t>(static_cast<std::int64_t>(centre - width + 0.5), 0);
    const auto end = std::min(static_cast<std::int64_t>(centre + width + 0.5), from);
    weights.clear();
    double sum = 0;
    for (std::int64_t s = first; s < end; ++s) {
      weights.push_back(std::max(0.0, 1 - std::abs(static_cast<double>(s) + 0.5 - centre) / width));
      sum += weights.back();
    }
    auto& taps = all[static_cast<std::size_t>(i)];
    taps.first = first;
    for (const double weight : weights)
      taps.weights.push_back(static_cast<std::int32_t>(std::lround(weight / sum * (1 << kFractionBits))));
  }
  return all;
}

/// Applies taps to values `step` bytes apart.
std::uint8_t sumOf(const Taps& taps, const std::uint8_t* values, std::int64_t step) {
  std::int64_t sum = std::int64_t{1} << (kFractionBits - 1);
  const auto* value = values + taps.first * step;
  for (const auto weight : taps.weights) {
    sum += std::int64_t{weight} * *value;
    value += step;
  }
  return static_cast<std::uint8_t>(std::clamp<std::int64_t>(sum >> kFractionBits, 0, 255));
}

}  // namespace

Tensor resizePicture(const Tensor& picture, Size2d size) {
  require(picture.defined() && picture.dtype() == DType::UInt8 && picture.shape().rank() == 3 &&
              picture.layout() == Layout::RowMajor && picture.device().isCpu() && picture.elements() > 0,
          "resizePicture: expected uint8 [C, H, W] on the CPU, got {}", picture.toString());
  require(size[0] >= 1 && size[1] >= 1, "resizePicture: a picture cannot have {} x {} pixels", size[1],
          size[0]);
  const std::int64_t channels = picture.shape()[0], height = picture.shape()[1], width = picture.shape()[2];
  if (size == Size2d(height, width)) return picture;
  const auto columns = tapsOf(width, size[1]), rows = tapsOf(height, size[0]);
  Tensor narrow = Tensor::empty({channels, height, size[1]}, DType::UInt8);
  Tensor result = Tensor::empty({channels, size[0], size[1]}, DType::UInt8);
  const auto* from = picture.data<std::uint8_t>();
  auto* to = narrow.data<std::uint8_t>();
  for (std::int64_t y = 0; y < channels * height; ++y, from += width)
    for (const auto& taps : columns) *to++ = sumOf(taps, from, 1);
  from = narrow.data<std::uint8_t>();
  to = result.data<std::uint8_t>();
  for (std::int64_t c = 0; c < channels; ++c, from += height * size[1])
    for (const auto& taps : rows)
      for (std::int64_t x = 0; x < size[1]; ++x) *to++ = sumOf(taps, from + x, size[1]);
  return result;
}

}  // namespace muster
