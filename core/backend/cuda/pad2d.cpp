#include "muster/core/ops/pad2d.h"

#include "muster/core/backend/cuda/kernels/image.h"
#include "muster/core/backend/cuda/state.h"
#include "muster/core/backend/planes.h"

namespace muster::cuda {
namespace {

PadCall callFor(const Tensor& x, const Padding2d& padding) {
  const Planes planes = planesOf(x.shape(), x.layout());
  return {planes.count, x.shape()[2], x.shape()[3], planes.lanes,
          padding[0],   padding[1],   padding[2],   padding[3]};
}

}  // namespace

void pad2d(const Tensor& x, const Padding2d& padding, Tensor& y, Context& context) {
  MUSTER_CUDA_CHECK(
      launchPad(callFor(x, padding), x.data<float>(), y.data<float>(), stateOf(context).stream()));
}

void pad2dBackward(const Tensor& gradY, const Padding2d& padding, Tensor& gradX, Context& context) {
  MUSTER_CUDA_CHECK(launchPadBackward(callFor(gradX, padding), gradY.data<float>(), gradX.data<float>(),
                                      stateOf(context).stream()));
}

}  // namespace muster::cuda
