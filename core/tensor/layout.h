#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "muster/core/base/fields.h"

namespace muster {

/// The order of an activation's elements in memory. Outside a compiled program everything is RowMajor; the
/// other layouts are for activations [N, C, H, W] inside one, chosen by the plans of its operations.
enum class Layout {
  RowMajor,       ///< in the order of the shape, last dimension fastest
  ChannelsLast,   ///< [N, H, W, C]
  ChannelBlocks,  ///< [N, ceil(C/16), H, W, 16], padding zero (oneDNN's nChw16c)
  SampleBlocks,   ///< [ceil(N/16), C, H, W, 16]: sixteen adjacent samples, padding zero
};
/// Channels that lie side by side in a blocked layout.
inline constexpr std::int64_t kLayoutBlock = 16;

template <>
struct EnumNames<Layout> {
  static constexpr std::array<std::pair<Layout, std::string_view>, 4> kNames{{
      {Layout::RowMajor, "row-major"},
      {Layout::ChannelsLast, "channels-last"},
      {Layout::ChannelBlocks, "channel-blocks"},
      {Layout::SampleBlocks, "sample-blocks"},
  }};
};

/// Elements in memory of an activation of `shape` in `layout`, including padding.
std::int64_t storageElements(const Shape& shape, Layout layout);

}  // namespace muster
