#pragma once

#include <memory>

#include "muster/core/backend/cpu/gemm.h"
#include "muster/core/backend/cpu/state.h"
#include "muster/core/backend/cpu/time_first.h"
#include "muster/core/backend/cpu/weight_gradient.h"
#include "muster/core/ops/recurrent.h"

namespace muster::cpu {

// Note [Transposed weights]
// dnnl_sgemm rearranges a transposed factor in every step, which takes up to a third of its time with few
// rows. So the forward pass transposes the recurrent weights once if there are steps enough to pay for it.
// Their rows have a distance of `spacedStride`.

/// Shared by the cells: memory order (Note [Time first]), masks, and the products over all steps.
class RecurrentLoop : public RecurrentPlan {
 public:
  RecurrentLoop(const RecurrentShape& shape, bool training, Context& context);

  void forward(const Tensor& x, const RecurrentWeights& weights, const Tensor& mask, Tensor& y) override;
  void backward(const RecurrentWeights& weights, const Tensor& mask, const Tensor& gradY,
                RecurrentWeights& gradients, Tensor& gradX) override;

 protected:
  /// Computes gates and state of step t, whose gates hold the input's part.
  virtual void forwardStep(std::int64_t t, const RecurrentWeights& weights, const Tensor& mask) = 0;
  /// Turns the gradient of the state after step t into the gradients of the state before it and of its gates.
  virtual void backwardStep(std::int64_t t, const RecurrentWeights& weights, const Tensor& mask) = 0;
  virtual void startBackward(const Tensor& gradY);
  virtual void gradientsOfRecurrence(RecurrentWeights& gradients) = 0;

  /// Calls f(row of the step, whether it is real) for all examples at step t.
  template <typename F>
  void forEachRow(const Tensor& mask, std::int64_t t, F f) {
    order_.forEachRow(mask, t, f);
  }

  float* gates(std::int64_t t) const { return gates_.data<float>() + t * batch_ * columns_; }
  float* gradGates(std::int64_t t) const { return gradGates_.data<float>() + t * batch_ * columns_; }
  /// The state before step t (after step t - 1).
  float* states(std::int64_t t) const { return states_.data<float>() + t * batch_ * units_; }
  float* gradState() const { return gradState_.data<float>(); }

  /// to [N, columns] = (the state before step t) times the recurrent weights, + keep * to.
  void multiplyState(std::int64_t t, const RecurrentWeights& weights, float keep, float* to);

  /// For `gradientOverSteps` of `rows` of the gates' gradients, or of others at a distance of `rowStride`.
  WeightGradient planGradient(std::int64_t rows, std::int64_t rowStride) const;

  /// gradient = gradOutputs^T (the states before the steps), over all steps in one product. Omits the first
  /// step, because the state before it is zero.
  /// @param first  the gradients of the outputs of step 1.
  void gradientOverSteps(WeightGradient& product, const float* first, float* gradient) {
    product.run(first, states(1), gradient);
  }

  /// sums[c] = the sum of column c of `values` [T, N, columns] over steps and examples, in order.
  void sumSteps(const Tensor& values, std::int64_t columns, float* sums);

  Context& context_;
  std::int64_t batch_, steps_, features_, units_, columns_;  // columns: of all gates
  Tensor x_;                                                 // [T, N, F], zero where padded
  Tensor gates_;                                             // [T, N, columns]
  Tensor states_;                                            // [T + 1, N, units], first zero
  Tensor gradGates_;                                         // like gates_; training only
  Tensor gradState_;                                         // [N, units]; training only

 private:
  static void expect(const char* name, const Tensor& tensor, const Shape& shape);
  void expectMask(const Tensor& mask) const {
    if (mask.defined()) expect("mask", mask, {batch_, steps_});
  }
  void expectWeights(const RecurrentWeights& weights) const;
  /// Copies the bias into all gates; the products are added to it.
  void spread(const Tensor& bias);
  void gradientsOfInput(RecurrentWeights& gradients);

  /// See Note [Transposed weights].
  bool transposesWeights() const { return steps_ >= 8; }
  std::int64_t transposedStride() const { return spacedStride(columns_); }
  float* transposed() const { return reinterpret_cast<float*>(stateOf(context_).workspace.data()); }
  void transpose(const Tensor& weight);

  RecurrentShape shape_;
  TimeFirst order_;
  WeightGradient gradInput_;
  Tensor gradX_;  // [T, N, F]; training only
};

/// The cells of `planRecurrent`.
std::unique_ptr<RecurrentPlan> planLstm(const RecurrentShape& shape, bool training, Context& context);
std::unique_ptr<RecurrentPlan> planGru(const RecurrentShape& shape, bool training, Context& context);

}  // namespace muster::cpu
