#pragma once

#include <memory>

#include "muster/core/ops/conv2d.h"

namespace muster::cpu {

/// Whether our own kernels can do this shape on this processor: one group, stride and dilation 1, a
/// kernel 1, 3, 5 or 7
/// wide, and AVX2 with FMA, or AVX-512.
bool directConv2dSupports(const Conv2dShape& shape);

/// A convolution on activations in blocks of sixteen samples (Layout::SampleBlocks). The inner loops run over
/// the samples, so that no vector lane is idle whatever the channels and the width are.
std::unique_ptr<Conv2dPlan> planDirectConv2d(const Conv2dShape& shape, Context& context);

}  // namespace muster::cpu
