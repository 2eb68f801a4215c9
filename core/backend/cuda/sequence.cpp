#include "muster/core/ops/sequence.h"

#include "muster/core/backend/cuda/kernels/sequence.h"
#include "muster/core/backend/cuda/state.h"

namespace muster::cuda {
namespace {

SequenceCall callFor(const Tensor& sequences, const Tensor& mask) {
  const Shape& shape = sequences.shape();
  return {shape[0], shape[1], shape[2], mask.defined() ? mask.data<float>() : nullptr};
}

}  // namespace

void maskSteps(const Tensor& x, const Tensor& mask, Tensor& y, Context& context) {
  MUSTER_CUDA_CHECK(
      launchMaskSteps(callFor(x, mask), x.data<float>(), y.data<float>(), stateOf(context).stream()));
}

void lastStepForward(const Tensor& x, const Tensor& mask, Tensor& y, Context& context) {
  MUSTER_CUDA_CHECK(
      launchLastStep(callFor(x, mask), x.data<float>(), y.data<float>(), stateOf(context).stream()));
}

void lastStepBackward(const Tensor& gradY, const Tensor& mask, Tensor& gradX, Context& context) {
  MUSTER_CUDA_CHECK(launchLastStepBackward(callFor(gradX, mask), gradY.data<float>(), gradX.data<float>(),
                                           stateOf(context).stream()));
}

void meanOverTimeForward(const Tensor& x, const Tensor& mask, Tensor& y, Context& context) {
  MUSTER_CUDA_CHECK(
      launchMeanOverTime(callFor(x, mask), x.data<float>(), y.data<float>(), stateOf(context).stream()));
}

void meanOverTimeBackward(const Tensor& gradY, const Tensor& mask, Tensor& gradX, Context& context) {
  MUSTER_CUDA_CHECK(launchMeanOverTimeBackward(callFor(gradX, mask), gradY.data<float>(), gradX.data<float>(),
                                               stateOf(context).stream()));
}

}  // namespace muster::cuda
