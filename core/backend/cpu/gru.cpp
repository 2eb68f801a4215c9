#include "muster/core/backend/cpu/recurrent_loop.h"
#include "muster/core/backend/cpu/recurrent_rows.h"
#include "muster/core/backend/cpu/simd.h"

namespace muster::cpu {
namespace {

class GruPlan final : public RecurrentLoop {
 public:
  GruPlan(const RecurrentShape& shape, bool training, Context& context)
      : RecurrentLoop(shape, training, context),
        gradResetUpdate_(planGradient(2 * units_, columns_)),
        gradCandidate_(planGradient(units_, units_)),
        products_(Tensor::zeros({batch_, columns_})),
        candidates_(Tensor::zeros({steps_, batch_, units_})) {
    if (training) gradCandidates_ = Tensor::zeros({steps_, batch_, units_});
  }

 private:
  void forwardStep(std::int64_t t, const RecurrentWeights& weights, const Tensor& mask) override {
    float* products = products_.data<float>();
    if (t > 0)
      multiplyState(t, weights, 0, products);
    else
      std::fill_n(products, batch_ * columns_, 0.0f);
    const float* bias = weights.recurrentBias.data<float>();
    forEachRow(mask, t, [=, this](std::int64_t n, bool real) {
      const std::int64_t at = n * units_;
      if (real)
        dispatch<gruForwardRow>(gates(t) + n * columns_, products + n * columns_, bias,
                                ofStep(candidates_, t) + at, states(t) + at, states(t + 1) + at, units_);
      else
        std::copy_n(states(t) + at, units_, states(t + 1) + at);
    });
  }

  void backwardStep(std::int64_t t, const RecurrentWeights& weights, const Tensor& mask) override {
    float* gradCandidates = ofStep(gradCandidates_, t);
    forEachRow(mask, t, [=, this](std::int64_t n, bool real) {
      const std::int64_t at = n * units_;
      if (real) {
        dispatch<gruBackwardRow>(gates(t) + n * columns_, ofStep(candidates_, t) + at, states(t) + at,
                                 gradState() + at, gradGates(t) + n * columns_, gradCandidates + at, units_);
      } else {
        std::fill_n(gradGates(t) + n * columns_, columns_, 0.0f);
        std::fill_n(gradCandidates + at, units_, 0.0f);
      }
    });
    if (t == 0) return;
    // The input's and the state's parts of r and z have equal gradients; r multiplies the state's part of n.
    const float* recurrent = weights.recurrent.data<float>();
    gemm(batch_, units_, 2 * units_, {gradGates(t), columns_}, {recurrent, units_}, 1, gradState(), units_);
    gemm(batch_, units_, units_, {gradCandidates, units_}, {recurrent + 2 * units_ * units_, units_}, 1,
         gradState(), units_);
  }

  void gradientsOfRecurrence(RecurrentWeights& gradients) override {
    float* recurrent = gradients.recurrent.data<float>();
    gradientOverSteps(gradResetUpdate_, gradGates(1), recurrent);
    gradientOverSteps(gradCandidate_, ofStep(gradCandidates_, 1), recurrent + 2 * units_ * units_);
    sumSteps(gradCandidates_, units_, gradients.recurrentBias.data<float>());
  }

  float* ofStep(const Tensor& tensor, std::int64_t t) const {
    return tensor.data<float>() + t * batch_ * units_;
  }

  WeightGradient gradResetUpdate_, gradCandidate_;
  Tensor products_;        // [N, columns], of one step
  Tensor candidates_;      // [T, N, units]: Un h + un
  Tensor gradCandidates_;  // [T, N, units]; training only
};

}  // namespace

std::unique_ptr<RecurrentPlan> planGru(const RecurrentShape& shape, bool training, Context& context) {
  return std::make_unique<GruPlan>(shape, training, context);
}

}  // namespace muster::cpu
