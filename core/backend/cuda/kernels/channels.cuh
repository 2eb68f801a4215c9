#pragma once

#include "muster/core/backend/cuda/kernels/channel_shape.h"
#include "muster/core/backend/cuda/kernels/for_each.cuh"

// Finding an element's channel, and the channel's entry in a table.

namespace muster::cuda {

// Each type below returns the entries of a table of `channels` floats for adjacent elements from i on.

/// All elements of a piece belong to one channel.
struct SameChannel {
  Extent channels, pixels;
  template <int width, typename Index>
  struct At {
    Index channel;
    __device__ Piece<float, width> of(const float* table) const {
      const float entry = table[channel];
      Piece<float, width> entries;
#pragma unroll
      for (int k = 0; k < width; ++k) entries.at[k] = entry;
      return entries;
    }
  };
  template <int width, typename Index>
  __device__ At<width, Index> at(Index i) const {
    return {i / pixels % channels};
  }
};

/// The elements of a piece belong to adjacent channels, whose entries are a piece of the table.
struct NeighbouringChannels {
  Extent channels;
  template <int width, typename Index>
  struct At {
    Index channel;
    __device__ Piece<float, width> of(const float* table) const { return read<width>(table + channel); }
  };
  template <int width, typename Index>
  __device__ At<width, Index> at(Index i) const {
    return {i % channels};
  }
};

struct AnyChannels {
  Extent channels, pixels;
  template <int width, typename Index>
  struct At {
    Index channel[width];
    __device__ Piece<float, width> of(const float* table) const {
      Piece<float, width> entries;
#pragma unroll
      for (int k = 0; k < width; ++k) entries.at[k] = table[channel[k]];
      return entries;
    }
  };
  template <int width, typename Index>
  __device__ At<width, Index> at(Index i) const {
    Index channel = i / pixels, pixel = i - channel * pixels;
    channel = channel % channels;
    At<width, Index> all;
#pragma unroll
    for (int k = 0; k < width; ++k) {
      all.channel[k] = channel;
      if (++pixel < pixels.as<Index>()) continue;
      pixel = 0;
      if (++channel == channels.as<Index>()) channel = 0;
    }
    return all;
  }
};

template <typename Places, typename F>
struct WithChannels {
  Places places;
  F f;
  template <typename Index, int width>
  __device__ void operator()(Index i, Width<width> all) const {
    f(i, places.template at<width>(i), all);
  }
};

/// Calls f(i, channels, width) as `forEachPiece` does; channels.of(table) are the elements' entries.
/// @param whole   `holdPieces` of the tensors.
/// @param tables  `holdPieces` of all tables.
template <typename F>
cudaError_t forEachInChannels(const ChannelShape& s, bool whole, bool tables, cudaStream_t stream, F f) {
  const Extent channels(s.channels), pixels(s.pixels);
  const auto run = [&](auto places) {
    return forEachPieceAndPlace(s.elements(), s.elements(), whole, stream,
                                WithChannels<decltype(places), F>{places, f});
  };
  if (whole && s.pixels % kPiece == 0) return run(SameChannel{channels, pixels});
  if (whole && tables && s.pixels == 1 && s.channels % kPiece == 0)
    return run(NeighbouringChannels{channels});
  return run(AnyChannels{channels, pixels});
}

}  // namespace muster::cuda
