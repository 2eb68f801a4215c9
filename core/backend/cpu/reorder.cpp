#include "muster/core/ops/reorder.h"

#include <algorithm>

#include "muster/core/backend/cpu/padding.h"
#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/backend/cpu/simd.h"

namespace muster::cpu {
namespace {

constexpr std::int64_t kBlock = kLayoutBlock;

/// The memory order of a layout: the strides of sample, channel and pixel within a block of sixteen samples
/// by sixteen channels, and those between blocks.
struct Strides {
  std::int64_t sample, channel, pixel, sampleBlock, channelBlock;
};

Strides stridesOf(const Shape& shape, Layout layout) {
  const std::int64_t channels = shape[1], pixels = shape[2] * shape[3];
  const std::int64_t padded = (channels + kBlock - 1) / kBlock * kBlock;
  switch (layout) {
    case Layout::RowMajor:
      return {channels * pixels, pixels, 1, kBlock * channels * pixels, kBlock * pixels};
    case Layout::ChannelsLast:
      return {channels * pixels, 1, channels, kBlock * channels * pixels, kBlock};
    case Layout::ChannelBlocks:
      return {padded * pixels, 1, kBlock, kBlock * padded * pixels, kBlock * pixels};
    case Layout::SampleBlocks:
      return {1, kBlock * pixels, kBlock, kBlock * channels * pixels, kBlock * kBlock * pixels};
  }
  return {};
}

/// One loop of a copy: its count, and the steps of source and target.
struct Loop {
  std::int64_t count, from, to;
};

[[gnu::always_inline]] inline float valueOf(float x) {
  return x;
}
[[gnu::always_inline]] inline float valueOf(std::uint8_t x) {
  return static_cast<float>(x) / 255.0f;
}

template <typename T>
[[gnu::always_inline]] inline void copyLoops(const T* from, float* to, Loop outer, Loop middle, Loop inner) {
  for (std::int64_t i = 0; i < outer.count; ++i)
    for (std::int64_t j = 0; j < middle.count; ++j) {
      const T* source = from + i * outer.from + j * middle.from;
      float* target = to + i * outer.to + j * middle.to;
      if (inner.from == 1 && inner.to == 1) {
        for (std::int64_t k = 0; k < inner.count; ++k) target[k] = valueOf(source[k]);
      } else {
        for (std::int64_t k = 0; k < inner.count; ++k) target[k * inner.to] = valueOf(source[k * inner.from]);
      }
    }
}

/// One block's loops: the innermost writes adjacent elements, the middle one reads adjacent elements.
struct Nest {
  Loop outer, middle, inner;
  Nest(std::array<Loop, 3> loops) {
    std::ranges::sort(loops, {}, [](const Loop& loop) { return std::pair(loop.to, loop.from); });
    inner = loops[0];
    const bool second = loops[1].from <= loops[2].from;
    middle = second ? loops[1] : loops[2];
    outer = second ? loops[2] : loops[1];
  }
};

template <typename T>
void copyBlocks(const T* from, Layout layout, Tensor& y, Context& context) {
  const Shape& shape = y.shape();
  const Strides in = stridesOf(shape, layout), out = stridesOf(shape, y.layout());
  float* to = y.data<float>();
  const std::int64_t samples = shape[0], channels = shape[1], pixels = shape[2] * shape[3];
  parallelFor(context, (samples + kBlock - 1) / kBlock, 1, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n)
      for (std::int64_t c = 0; c * kBlock < channels; ++c) {
        const Nest nest({Loop{std::min(kBlock, samples - n * kBlock), in.sample, out.sample},
                         Loop{std::min(kBlock, channels - c * kBlock), in.channel, out.channel},
                         Loop{pixels, in.pixel, out.pixel}});
        dispatch<copyLoops<T>>(from + n * in.sampleBlock + c * in.channelBlock,
                               to + n * out.sampleBlock + c * out.channelBlock, nest.outer, nest.middle,
                               nest.inner);
      }
  });
}

}  // namespace

void reorder(const Tensor& x, Tensor& y, Context& context) {
  if (x.layout() == y.layout()) return copy(x, y);
  copyBlocks(x.data<float>(), x.layout(), y, context);
  zeroPadding(y);
}

void loadFeatures(const Tensor& x, Tensor& y, Context& context) {
  if (x.dtype() == DType::Float32) return cpu::reorder(x, y, context);
  if (x.layout() != y.layout()) {
    copyBlocks(x.data<std::uint8_t>(), x.layout(), y, context);
    return zeroPadding(y);
  }
  const std::uint8_t* from = x.data<std::uint8_t>();
  float* to = y.data<float>();
  parallelFor(context, x.storage(), 4096, [=](std::int64_t begin, std::int64_t end) {
    dispatch<copyLoops<std::uint8_t>>(from + begin, to + begin, Loop{1, 0, 0}, Loop{1, 0, 0},
                                      Loop{end - begin, 1, 1});
  });
}

void loadIndices(const Tensor& x, Tensor& y, Context& context) {
  if (x.dtype() == DType::Int64) return copy(x, y, context);
  std::ranges::copy(x.span<std::uint8_t>(), y.data<std::int64_t>());
}

}  // namespace muster::cpu
