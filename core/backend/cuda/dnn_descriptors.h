#pragma once

#include "muster/core/backend/cuda/owners.h"
#include "muster/core/ops/conv2d.h"

namespace muster::cuda {

// What cuDNN is told of a convolution; no GPU is needed to make these. Layouts are row-major and
// channels-last. They throw InvalidArgument for sizes that do not fit 32 bits, and what a call of cuDNN's
// that fails means.

TensorOwner makeTensor(const Shape& shape, Layout layout, cudnnDataType_t type);
FilterOwner makeFilter(const Shape& shape, Layout layout, cudnnDataType_t type);
ConvolutionOwner makeConvolution(const Conv2dShape& shape, cudnnMathType_t mathType);

}  // namespace muster::cuda
