#pragma once

#include "muster/core/ops/conv2d.h"
#include "muster/core/ops/conv_transpose2d.h"
#include "muster/core/ops/pool2d.h"

namespace muster::test {

/// `options` with the sizes of an input x [N, C, H, W].
template <typename Convolution>
Convolution ofInput(const Shape& x, std::int64_t outChannels, Convolution options) {
  options.batch = x[0];
  options.inChannels = x[1];
  options.height = x[2];
  options.width = x[3];
  options.outChannels = outChannels;
  return options;
}

inline Conv2dShape conv(const Shape& x, std::int64_t outChannels, const Conv2dShape& options = {}) {
  return ofInput(x, outChannels, options);
}

inline ConvTranspose2dShape convTranspose(const Shape& x, std::int64_t outChannels,
                                          const ConvTranspose2dShape& options = {}) {
  return ofInput(x, outChannels, options);
}

inline Pool2dShape pool(const Shape& x, Pool2dShape options = {}) {
  options.batch = x[0];
  options.channels = x[1];
  options.height = x[2];
  options.width = x[3];
  return options;
}

}  // namespace muster::test
