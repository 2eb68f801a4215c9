#pragma once

#include <memory>

#include "muster/core/ops/conv2d.h"

namespace muster::cpu {

namespace direct {

struct BlockShape;
BlockShape blockShapeOf(const Conv2dShape& shape);

}  // namespace direct

/// Whether our own kernels support this shape on this processor: one group, stride and dilation 1, kernel
/// width 1, 3, 5 or 7, and AVX2 with FMA or AVX-512.
bool directConv2dSupports(const Conv2dShape& shape, const Context& context);

/// A convolution of activations in blocks of sixteen samples (Layout::SampleBlocks). Vectors hold samples, so
/// all lanes are used for any number of channels and any width.
std::unique_ptr<Conv2dPlan> planDirectConv2d(const Conv2dShape& shape, Context& context);

}  // namespace muster::cpu
