#include "muster/core/backend/cpu/recurrent_loop.h"

#include <algorithm>

#include "muster/core/backend/cpu/column_sums.h"
#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/backend/cpu/simd.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

namespace muster::cpu {
namespace {

/// to[u * stride + r] = from[r * units + u] for rows r from `begin` to `end`.
[[gnu::always_inline]] inline void transposeRows(const float* from, float* to, std::int64_t units,
                                                 std::int64_t stride, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kColumns = 16;  // whose rows of `to` stay in the L1 cache
  for (std::int64_t first = 0; first < units; first += kColumns)
    for (std::int64_t r = begin; r < end; ++r)
      for (std::int64_t u = first; u < std::min(units, first + kColumns); ++u)
        to[u * stride + r] = from[r * units + u];
}

}  // namespace

RecurrentLoop::RecurrentLoop(const RecurrentShape& shape, bool training, Context& context)
    : context_(context),
      batch_(shape.batch),
      steps_(shape.steps),
      features_(shape.features),
      units_(shape.units),
      columns_(shape.gates() * shape.units),
      x_(Tensor::zeros({steps_, batch_, features_})),
      gates_(Tensor::zeros({steps_, batch_, columns_})),
      states_(Tensor::zeros({steps_ + 1, batch_, units_})),
      shape_(shape),
      order_(batch_, steps_, units_, context),
      gradInput_(training ? steps_ * batch_ : 0, columns_, columns_, features_, context) {
  if (transposesWeights())
    stateOf(context).workspace.reserve(static_cast<std::size_t>(units_ * transposedStride()) * sizeof(float));
  if (!training) return;
  gradGates_ = Tensor::zeros({steps_, batch_, columns_});
  gradState_ = Tensor::zeros({batch_, units_});
  gradX_ = Tensor::zeros({steps_, batch_, features_});
}

void RecurrentLoop::forward(const Tensor& x, const RecurrentWeights& weights, const Tensor& mask, Tensor& y) {
  expect("x", x, shape_.input());
  expectWeights(weights);
  expectMask(mask);
  expect("y", y, shape_.output());
  order_.load(x.data<float>(), mask, features_, x_.data<float>());
  spread(weights.bias);
  gemm(steps_ * batch_, columns_, features_, {x_.data<float>(), features_},
       {weights.input.data<float>(), features_, true}, 1, gates_.data<float>(), columns_);
  if (transposesWeights()) transpose(weights.recurrent);
  for (std::int64_t t = 0; t < steps_; ++t) forwardStep(t, weights, mask);
  if (shape_.sequences)
    order_.store(states(1), mask, units_, y.data<float>());
  else
    std::copy_n(states(steps_), batch_ * units_, y.data<float>());
}

void RecurrentLoop::backward(const RecurrentWeights& weights, const Tensor& mask, const Tensor& gradY,
                             RecurrentWeights& gradients, Tensor& gradX) {
  require(gradGates_.defined(), "recurrent: backward() of a plan that is not for training");
  expectWeights(weights);
  expectMask(mask);
  expect("gradY", gradY, shape_.output());
  expectWeights(gradients);
  if (gradX.defined()) expect("gradX", gradX, shape_.input());
  startBackward(gradY);
  for (std::int64_t t = steps_; t-- > 0;) {
    // The output of padding is zero.
    if (shape_.sequences) order_.addStep(gradY.data<float>(), mask, t, units_, gradState());
    backwardStep(t, weights, mask);
  }
  gradientsOfInput(gradients);
  gradientsOfRecurrence(gradients);
  if (!gradX.defined()) return;
  gemm(steps_ * batch_, features_, columns_, {gradGates_.data<float>(), columns_},
       {weights.input.data<float>(), features_}, 0, gradX_.data<float>(), features_);
  order_.storeAll(gradX_.data<float>(), features_, gradX.data<float>());
}

void RecurrentLoop::startBackward(const Tensor& gradY) {
  if (shape_.sequences)
    std::ranges::fill(gradState_.span<float>(), 0.0f);
  else
    copy(gradY, gradState_, context_);
}

void RecurrentLoop::multiplyState(std::int64_t t, const RecurrentWeights& weights, float keep, float* to) {
  const Matrix factor = transposesWeights() ? Matrix{transposed(), transposedStride()}
                                            : Matrix{weights.recurrent.data<float>(), units_, true};
  gemm(batch_, columns_, units_, {states(t), units_}, factor, keep, to, columns_);
}

WeightGradient RecurrentLoop::planGradient(std::int64_t rows, std::int64_t rowStride) const {
  const bool training = gradGates_.defined();
  return {training ? (steps_ - 1) * batch_ : 0, rows, rowStride, units_, context_};
}

void RecurrentLoop::sumSteps(const Tensor& values, std::int64_t columns, float* sums) {
  const float* from = values.data<float>();
  const std::int64_t rows = steps_ * batch_;
  parallelFor(context_, columns, 64, [=](std::int64_t begin, std::int64_t end) {
    dispatch<sumColumns<float>>(from, sums, rows, columns, begin, end);
  });
}

void RecurrentLoop::expectWeights(const RecurrentWeights& weights) const {
  expect("input weight", weights.input, {columns_, features_});
  expect("recurrent weight", weights.recurrent, {columns_, units_});
  expect("bias", weights.bias, {columns_});
  if (shape_.cell == RecurrentCell::GRU) expect("recurrent bias", weights.recurrentBias, {units_});
}

void RecurrentLoop::spread(const Tensor& bias) {
  const float* from = bias.data<float>();
  float* to = gates_.data<float>();
  const std::int64_t columns = columns_;
  parallelFor(context_, steps_ * batch_, 16, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n) std::copy_n(from, columns, to + n * columns);
  });
}

void RecurrentLoop::gradientsOfInput(RecurrentWeights& gradients) {
  gradInput_.run(gradGates_.data<float>(), x_.data<float>(), gradients.input.data<float>());
  sumSteps(gradGates_, columns_, gradients.bias.data<float>());
}

void RecurrentLoop::transpose(const Tensor& weight) {
  const float* from = weight.data<float>();
  float* to = transposed();
  parallelFor(context_, columns_, 64, [=, this](std::int64_t begin, std::int64_t end) {
    dispatch<transposeRows>(from, to, units_, transposedStride(), begin, end);
  });
}

void RecurrentLoop::expect(const char* name, const Tensor& tensor, const Shape& shape) {
  muster::detail::expectTensor("recurrent", name, tensor, {shape});
}

std::unique_ptr<RecurrentPlan> planRecurrent(const RecurrentShape& shape, bool training, Context& context) {
  fillSmallChunkCache();
  return shape.cell == RecurrentCell::LSTM ? planLstm(shape, training, context)
                                           : planGru(shape, training, context);
}

}  // namespace muster::cpu
