#pragma once

#include "muster/core/backend/cuda/owners.h"
#include "muster/core/ops/conv2d.h"

namespace muster::cuda {

// cuDNN's descriptors of a convolution, for row-major and channels-last layouts; creating them needs no GPU.
// These functions throw InvalidArgument for sizes that do not fit 32 bits, and the exception of a failed
// cuDNN call.

TensorOwner makeTensor(const Shape& shape, Layout layout, cudnnDataType_t type);
FilterOwner makeFilter(const Shape& shape, Layout layout, cudnnDataType_t type);
ConvolutionOwner makeConvolution(const Conv2dShape& shape, cudnnMathType_t mathType);

}  // namespace muster::cuda
