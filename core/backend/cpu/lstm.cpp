#include "muster/core/backend/cpu/recurrent_loop.h"
#include "muster/core/backend/cpu/recurrent_rows.h"
#include "muster/core/backend/cpu/simd.h"

namespace muster::cpu {
namespace {

class LstmPlan final : public RecurrentLoop {
 public:
  LstmPlan(const RecurrentShape& shape, bool training, Context& context)
      : RecurrentLoop(shape, training, context),
        gradRecurrent_(planGradient(columns_, columns_)),
        cells_(Tensor::zeros({steps_ + 1, batch_, units_})) {
    if (training) gradCell_ = Tensor::zeros({batch_, units_});
  }

 private:
  void forwardStep(std::int64_t t, const RecurrentWeights& weights, const Tensor& mask) override {
    if (t > 0) multiplyState(t, weights, 1, gates(t));
    forEachRow(mask, t, [=, this](std::int64_t n, bool real) {
      const std::int64_t at = n * units_;
      if (real) {
        dispatch<lstmForwardRow>(gates(t) + n * columns_, cells(t) + at, cells(t + 1) + at,
                                 states(t + 1) + at, units_);
      } else {
        std::copy_n(cells(t) + at, units_, cells(t + 1) + at);
        std::copy_n(states(t) + at, units_, states(t + 1) + at);
      }
    });
  }

  void startBackward(const Tensor& gradY) override {
    RecurrentLoop::startBackward(gradY);
    std::ranges::fill(gradCell_.span<float>(), 0.0f);
  }

  void backwardStep(std::int64_t t, const RecurrentWeights& weights, const Tensor& mask) override {
    float* gradCell = gradCell_.data<float>();
    forEachRow(mask, t, [=, this](std::int64_t n, bool real) {
      const std::int64_t at = n * units_;
      if (real)
        dispatch<lstmBackwardRow>(gates(t) + n * columns_, cells(t) + at, cells(t + 1) + at, gradState() + at,
                                  gradCell + at, gradGates(t) + n * columns_, units_);
      else
        std::fill_n(gradGates(t) + n * columns_, columns_, 0.0f);
    });
    if (t > 0)
      gemm(batch_, units_, columns_, {gradGates(t), columns_}, {weights.recurrent.data<float>(), units_}, 1,
           gradState(), units_);
  }

  void gradientsOfRecurrence(RecurrentWeights& gradients) override {
    gradientOverSteps(gradRecurrent_, gradGates(1), gradients.recurrent.data<float>());
  }

  /// The cell before step t (after step t - 1).
  float* cells(std::int64_t t) const { return cells_.data<float>() + t * batch_ * units_; }

  WeightGradient gradRecurrent_;
  Tensor cells_;     // [T + 1, N, units], first zero
  Tensor gradCell_;  // [N, units]; training only
};

}  // namespace

std::unique_ptr<RecurrentPlan> planLstm(const RecurrentShape& shape, bool training, Context& context) {
  return std::make_unique<LstmPlan>(shape, training, context);
}

}  // namespace muster::cpu
