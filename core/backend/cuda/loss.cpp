#include "muster/core/ops/loss.h"

#include "muster/core/backend/cuda/kernels/loss.h"

#include "muster/core/backend/cuda/state.h"

namespace muster::cuda {
namespace {

static_assert(kMostLossSums * sizeof(double) <= kScratchBytes);

LossKind kindOf(Loss kind, const Tensor& labels) {
  switch (kind) {
    case Loss::NegativeLogLikelihood:
      return labels.dtype() == DType::Int64 ? LossKind::Classes : LossKind::SoftLabels;
    case Loss::MeanSquaredError:
      return LossKind::Squared;
    case Loss::BinaryCrossEntropy:
      return LossKind::Binary;
    case Loss::MeanAbsoluteError:
      return LossKind::Absolute;
    case Loss::Huber:
      return LossKind::Huber;
  }
  return LossKind::SoftLabels;
}

void run(const LossRule& rule, const Tensor& predictions, const Tensor& labels, const Tensor& mask,
         Tensor& gradient, const double* normaliserAt, double normaliser, double* value, State& state) {
  LossCall call{};
  call.kind = kindOf(rule.kind, labels);
  call.delta = rule.delta;
  call.smoothing = rule.labelSmoothing;
  call.predictions = predictions.data<float>();
  if (labels.dtype() == DType::Int64)
    call.classes = labels.data<std::int64_t>();
  else
    call.labels = labels.data<float>();
  if (mask.defined()) call.mask = mask.data<float>();
  if (gradient.defined()) call.gradient = gradient.data<float>();
  call.normaliserAt = normaliserAt;
  call.normaliser = normaliser;
  call.value = value;
  call.features = predictions.shape()[-1];
  call.rows = predictions.elements() / call.features;
  MUSTER_CUDA_CHECK(launchLoss(call, state.partialSums(), state.stream()));
}

}  // namespace

LossValue loss(const LossRule& rule, const Tensor& predictions, const Tensor& labels, const Tensor& mask,
               Tensor& gradient, double normaliser, Context& context) {
  State& state = stateOf(context);
  run(rule, predictions, labels, mask, gradient, nullptr, normaliser,
      reinterpret_cast<double*>(state.deviceResult()), state);
  const auto* const value = reinterpret_cast<const double*>(state.readResult(kLossNumbers * sizeof(double)));
  return lossValue({value, kLossNumbers}, predictions.shape());
}

void lossInto(const LossRule& rule, const Tensor& predictions, const Tensor& labels, const Tensor& mask,
              Tensor& gradient, const Tensor& normaliser, Tensor& value, Context& context) {
  run(rule, predictions, labels, mask, gradient, normaliser.defined() ? normaliser.data<double>() : nullptr,
      0, value.data<double>(), stateOf(context));
}

}  // namespace muster::cuda
