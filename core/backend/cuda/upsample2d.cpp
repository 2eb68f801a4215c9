#include "muster/core/ops/upsample2d.h"

#include "muster/core/backend/cuda/kernels/image.h"
#include "muster/core/backend/cuda/state.h"
#include "muster/core/backend/planes.h"

namespace muster::cuda {
namespace {

UpsampleCall callFor(const Tensor& small, const Tensor& large) {
  const Planes planes = planesOf(small.shape(), small.layout());
  const Shape &in = small.shape(), &out = large.shape();
  return {planes.count, in[2], in[3], planes.lanes, out[2] / in[2], out[3] / in[3]};
}

}  // namespace

void upsample2d(UpsampleMode mode, const Tensor& x, Tensor& y, Context& context) {
  const auto launch = mode == UpsampleMode::Nearest ? launchNearest : launchBilinear;
  MUSTER_CUDA_CHECK(launch(callFor(x, y), x.data<float>(), y.data<float>(), stateOf(context).stream()));
}

void upsample2dBackward(UpsampleMode mode, const Tensor& gradY, Tensor& gradX, Context& context) {
  const auto launch = mode == UpsampleMode::Nearest ? launchNearestBackward : launchBilinearBackward;
  MUSTER_CUDA_CHECK(
      launch(callFor(gradX, gradY), gradY.data<float>(), gradX.data<float>(), stateOf(context).stream()));
}

}  // namespace muster::cuda
