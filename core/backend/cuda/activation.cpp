#include "muster/core/ops/activation.h"

#include "muster/core/backend/cuda/kernels/activation.h"
#include "muster/core/backend/cuda/state.h"
#include "muster/core/base/error.h"

namespace muster::cuda {
namespace {

Function functionOf(Activation activation) {
  switch (activation) {
    case Activation::ReLU:
      return Function::Relu;
    case Activation::LeakyReLU:
      return Function::LeakyRelu;
    case Activation::Tanh:
      return Function::Tanh;
    case Activation::Sigmoid:
      return Function::Sigmoid;
    case Activation::GELU:
      return Function::Gelu;
    case Activation::Identity:
    case Activation::Softmax:
      break;
  }
  throw InvalidArgument(fmt::format("activation: {} is not element-wise", nameOf(activation)));
}

/// Softmax runs over dimension 1 of [N, C] or [N, C, H, W], over the last dimension of [N, T, F].
SoftmaxShape softmaxShapeOf(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  if (shape.rank() == 3) return {shape[0] * shape[1], shape[2], 1};
  const std::int64_t pixels = shape.rank() == 4 ? shape[2] * shape[3] : 1;
  return {shape[0] * pixels, shape[1], pixels};
}

/// Refuses sigmoid for layouts with padding: sigmoid(0) is not 0, so the padding would not stay zero.
void requireNoPadding(Activation activation, const Tensor& y) {
  require(activation != Activation::Sigmoid || y.storage() == y.elements(),
          "activation: sigmoid of {} is not available on a GPU, whose layouts have no padding",
          nameOf(y.layout()));
}

}  // namespace

void activationForward(Activation activation, const Tensor& x, Tensor& y, Context& context) {
  const cudaStream_t stream = stateOf(context).stream();
  const float* from = x.data<float>();
  float* to = y.data<float>();
  if (activation == Activation::Identity) {
    if (from != to) copy(x, y, context);
    return;
  }
  if (activation == Activation::Softmax) {
    MUSTER_CUDA_CHECK(launchSoftmax(from, to, softmaxShapeOf(x), stream));
    return;
  }
  requireNoPadding(activation, y);
  MUSTER_CUDA_CHECK(launchForward(functionOf(activation), from, to, x.storage(), kLeakySlope, stream));
}

void activationBackward(Activation activation, const Tensor& x, const Tensor& y, const Tensor& gradY,
                        Tensor& gradX, Context& context) {
  const cudaStream_t stream = stateOf(context).stream();
  const float* from = gradY.data<float>();
  float* to = gradX.data<float>();
  if (activation == Activation::Identity) {
    if (from != to) copy(gradY, gradX, context);
    return;
  }
  if (activation == Activation::Softmax) {
    MUSTER_CUDA_CHECK(launchSoftmaxBackward(y.data<float>(), from, to, softmaxShapeOf(y), stream));
    return;
  }
  const float* kept = (activation == Activation::GELU ? x : y).data<float>();
  MUSTER_CUDA_CHECK(
      launchBackward(functionOf(activation), kept, from, to, gradY.storage(), kLeakySlope, stream));
}

}  // namespace muster::cuda
