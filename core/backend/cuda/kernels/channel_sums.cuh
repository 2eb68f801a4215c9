#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "muster/core/backend/cuda/kernels/channel_sums.h"
#include "muster/core/backend/cuda/kernels/reduce.cuh"

namespace muster::cuda {

/// A value's index in the tensor, its sample and its channel.
struct ChannelValue {
  std::int64_t place, sample, channel;
};

/// The distribution of sums: a block takes a strip of adjacent channels and a part of their values; thread t
/// takes channel t % width and every kBlockThreads / width-th value. Depends on the shape only.
struct ChannelCut {
  std::int64_t strips, parts;
  std::int64_t length;  // values of a part; the last part may have fewer
  unsigned logWidth;    // a strip has 2^logWidth channels; the last strip may have fewer
  // The step from one value of a thread to the next.
  std::int64_t stepSamples, stepPixels;
};

inline ChannelCut cutOf(const ChannelShape& s) {
  constexpr std::int64_t kWorth = 16 * kBlockThreads;  // minimum values per block
  ChannelCut cut{};
  std::int64_t width = 1;
  for (; width < s.channels && width < kMostStrip && width * s.pixels < kMostStrip; width *= 2)
    ++cut.logWidth;
  cut.strips = (s.channels + width - 1) / width;
  const std::int64_t values = s.samples * s.pixels;
  const std::int64_t worth = values * width / kWorth, most = kMostSumBlocks / cut.strips;
  const std::int64_t parts = worth < most ? worth : most, round = 32 / width;
  cut.length = parts < 2 ? values : ((values + parts - 1) / parts + round - 1) / round * round;
  cut.parts = parts < 2 ? 1 : (values + cut.length - 1) / cut.length;
  cut.stepSamples = kBlockThreads / width / s.pixels;
  cut.stepPixels = kBlockThreads / width % s.pixels;
  return cut;
}

/// Adds the terms of a thread's values, several loads at a time. Index is the type of indices.
template <typename Index, int n, typename F>
__device__ void addValues(const ChannelShape& s, const ChannelCut& cut, std::int64_t channel,
                          std::int64_t part, double (&sums)[n], const F& f) {
  constexpr unsigned kAtOnce = 8, kLogThreads = 8;
  static_assert(kBlockThreads == 1 << kLogThreads);
  const std::int64_t begin = part * cut.length, all = s.samples * s.pixels;
  const std::int64_t end = begin + cut.length < all ? begin + cut.length : all;
  const std::int64_t first = begin + (threadIdx.x >> cut.logWidth);
  if (first >= end) return;
  auto left = static_cast<unsigned>(((end - first - 1) >> (kLogThreads - cut.logWidth)) + 1);

  // The only division: samples and pixels are then updated by additions.
  const auto pixels = static_cast<Index>(s.pixels);
  auto sample = static_cast<Index>(first), pixel = Index{0};
  if (pixels > 1) {
    sample /= pixels;
    pixel = static_cast<Index>(first) - sample * pixels;
  }
  const Index row = static_cast<Index>(s.channels) * pixels;  // elements of all channels
  Index place = sample * row + static_cast<Index>(channel) * pixels + pixel;
  const auto stepSamples = static_cast<Index>(cut.stepSamples),
             stepPixels = static_cast<Index>(cut.stepPixels);
  const Index step = stepSamples * row + stepPixels, toNextRow = row - pixels;

  const auto addSome = [&](auto whole) {
    double terms[kAtOnce][n];
#pragma unroll
    for (unsigned u = 0; u < kAtOnce; ++u) {
      f(ChannelValue{static_cast<std::int64_t>(place), static_cast<std::int64_t>(sample), channel}, terms[u]);
      if (!whole() && u + 1 >= left) continue;  // repeats the last value, which is not added
      place += step;
      sample += stepSamples;
      pixel += stepPixels;
      if (pixel >= pixels) {
        pixel -= pixels;
        ++sample;
        place += toNextRow;
      }
    }
#pragma unroll
    for (unsigned u = 0; u < kAtOnce; ++u)
      if (whole() || u < left)
#pragma unroll
        for (int k = 0; k < n; ++k) sums[k] += terms[u][k];
  };
  for (; left > kAtOnce; left -= kAtOnce) addSome(std::true_type{});
  addSome(std::false_type{});
}

/// Adds this thread's share of the parts of a strip.
template <int n>
__device__ void addParts(const ChannelCut& cut, std::int64_t strip, const double* numbers,
                         double (&sums)[n]) {
  constexpr std::int64_t kAtOnce = 4;
  const unsigned width = 1u << cut.logWidth, lane = threadIdx.x % width;
  const std::int64_t step = kBlockThreads >> cut.logWidth;
  for (std::int64_t first = threadIdx.x >> cut.logWidth; first < cut.parts; first += kAtOnce * step) {
    double terms[kAtOnce][n];
#pragma unroll
    for (std::int64_t u = 0; u < kAtOnce; ++u)
#pragma unroll
      for (int k = 0; k < n; ++k) {
        const std::int64_t part = first + u * step;
        terms[u][k] =
            part < cut.parts ? __ldcg(numbers + ((part * cut.strips + strip) * n + k) * width + lane) : 0.0;
      }
#pragma unroll
    for (std::int64_t u = 0; u < kAtOnce; ++u)
#pragma unroll
      for (int k = 0; k < n; ++k) sums[k] += terms[u][k];
  }
}

/// The block that finishes a strip last adds its parts, always in the same order.
template <typename Index, int n, typename F, typename Done>
__global__ void __launch_bounds__(kBlockThreads)
    channelSumsKernel(ChannelShape s, ChannelCut cut, PartialSums partial, F f, Done done) {
  const unsigned width = 1u << cut.logWidth, lane = threadIdx.x % width;
  for (std::int64_t block = blockIdx.x; block < cut.strips * cut.parts; block += gridDim.x) {
    const bool alone = cut.parts == 1;  // else there are at most kMostSumBlocks blocks with one strip each
    const std::int64_t part = alone ? 0 : blockIdx.x / static_cast<unsigned>(cut.strips);
    const std::int64_t strip = block - part * cut.strips, channel = (strip << cut.logWidth) + lane;
    double sums[n] = {};
    if (channel < s.channels) addValues<Index>(s, cut, channel, part, sums, f);
    sumOverBlock<kMostStrip>(sums, width);
    if (!alone) {
      if (threadIdx.x < width)
        for (int k = 0; k < n; ++k) partial.numbers[(block * n + k) * width + lane] = sums[k];
      if (!isLastBlock(partial.counters + strip, static_cast<unsigned>(cut.parts))) return;
      for (int k = 0; k < n; ++k) sums[k] = 0;
      addParts(cut, strip, partial.numbers, sums);
      sumOverBlock<kMostStrip>(sums, width);
    }
    if (threadIdx.x < width && channel < s.channels) done(channel, sums);
  }
}

/// Forms n sums for each channel: f(value, terms) gives a value's terms, done(channel, sums) receives the
/// sums.
template <int n, typename F, typename Done>
cudaError_t sumChannels(const ChannelShape& s, const PartialSums& partial, cudaStream_t stream, F f,
                        Done done) {
  static_assert(n <= kMostSumsOfChannel);
  if (s.channels <= 0 || s.pixels <= 0) return cudaSuccess;
  const ChannelCut cut = cutOf(s);
  const int blocks = blocksFor(cut.strips * cut.parts, 1);
  if (s.samples * s.channels * s.pixels <= 0x7fffffff)
    channelSumsKernel<std::uint32_t, n><<<blocks, kBlockThreads, 0, stream>>>(s, cut, partial, f, done);
  else
    channelSumsKernel<std::uint64_t, n><<<blocks, kBlockThreads, 0, stream>>>(s, cut, partial, f, done);
  return cudaGetLastError();
}

}  // namespace muster::cuda
