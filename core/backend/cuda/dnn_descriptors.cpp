#include "muster/core/backend/cuda/dnn_descriptors.h"

#include <limits>

#include "muster/core/backend/cuda/vendor.h"
#include "muster/core/base/error.h"

namespace muster::cuda {
namespace {

int toInt(std::int64_t size) {
  require(size <= std::numeric_limits<int>::max(), "conv2d: cuDNN takes sizes up to 2^31 - 1, got {}", size);
  return static_cast<int>(size);
}

cudnnTensorFormat_t formatOf(Layout layout) {
  return layout == Layout::ChannelsLast ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
}

}  // namespace

TensorOwner makeTensor(const Shape& s, Layout layout, cudnnDataType_t type) {
  auto tensor =
      make<TensorOwner>([](auto* made) { MUSTER_CUDA_CHECK(dnn().cudnnCreateTensorDescriptor(made)); });
  MUSTER_CUDA_CHECK(dnn().cudnnSetTensor4dDescriptor(tensor.get(), formatOf(layout), type, toInt(s[0]),
                                                     toInt(s[1]), toInt(s[2]), toInt(s[3])));
  return tensor;
}

FilterOwner makeFilter(const Shape& s, Layout layout, cudnnDataType_t type) {
  auto filter =
      make<FilterOwner>([](auto* made) { MUSTER_CUDA_CHECK(dnn().cudnnCreateFilterDescriptor(made)); });
  MUSTER_CUDA_CHECK(dnn().cudnnSetFilter4dDescriptor(filter.get(), type, formatOf(layout), toInt(s[0]),
                                                     toInt(s[1]), toInt(s[2]), toInt(s[3])));
  return filter;
}

ConvolutionOwner makeConvolution(const Conv2dShape& s, cudnnMathType_t mathType) {
  auto convolution = make<ConvolutionOwner>(
      [](auto* made) { MUSTER_CUDA_CHECK(dnn().cudnnCreateConvolutionDescriptor(made)); });
  MUSTER_CUDA_CHECK(dnn().cudnnSetConvolution2dDescriptor(
      convolution.get(), toInt(s.padding[0]), toInt(s.padding[1]), toInt(s.stride[0]), toInt(s.stride[1]),
      toInt(s.dilation[0]), toInt(s.dilation[1]), CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  MUSTER_CUDA_CHECK(dnn().cudnnSetConvolutionGroupCount(convolution.get(), toInt(s.groups)));
  MUSTER_CUDA_CHECK(dnn().cudnnSetConvolutionMathType(convolution.get(), mathType));
  return convolution;
}

}  // namespace muster::cuda
