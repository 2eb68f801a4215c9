#include "muster/core/ops/recurrent.h"

#include <algorithm>

#include "muster/core/backend/cpu/gemm.h"
#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/backend/cpu/recurrent_loops.h"
#include "muster/core/backend/cpu/simd.h"
#include "muster/core/backend/cpu/state.h"
#include "muster/core/backend/cpu/weight_gradient.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

namespace muster::cpu {
namespace {

/// sums[f] = the sum over the rows, in order, of columns [begin, end).
[[gnu::always_inline]] inline void sumColumns(const float* x, float* sums, std::int64_t rows,
                                              std::int64_t columns, std::int64_t begin, std::int64_t end) {
  std::fill(sums + begin, sums + end, 0.0f);
  for (std::int64_t n = 0; n < rows; ++n)
    for (std::int64_t f = begin; f < end; ++f) sums[f] += x[n * columns + f];
}

/// to[u * stride + r] = from[r * units + u] for rows r from `begin` to `end`.
[[gnu::always_inline]] inline void transposeRows(const float* from, float* to, std::int64_t units,
                                                 std::int64_t stride, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kColumns = 16;  // whose rows of `to` stay in the L1 cache
  for (std::int64_t first = 0; first < units; first += kColumns)
    for (std::int64_t r = begin; r < end; ++r)
      for (std::int64_t u = first; u < std::min(units, first + kColumns); ++u)
        to[u * stride + r] = from[r * units + u];
}

// Note [Transposed weights]
// dnnl_sgemm rearranges a transposed factor in every step, which takes up to a third of its time with few
// rows. So the forward pass transposes the recurrent weights once if there are steps enough to pay for it.
// Their rows get a distance that is no multiple of 1 KiB, for the reason that weight_gradient.h gives.

// Note [Time first]
// All internal tensors are [T, N, ...]: the rows of one step are adjacent, and one product computes the
// input's part of all gates, another each weight gradient. Copying sequences into this order and back pays
// off, because the products read them many times.

/// Shared by the cells: memory order, masks, and the products over all steps.
class RecurrentLoop : public RecurrentPlan {
 public:
  RecurrentLoop(const RecurrentShape& shape, bool training, Context& context)
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
        gradInput_(training ? steps_ * batch_ : 0, columns_, columns_, features_, context) {
    if (transposesWeights())
      stateOf(context).workspace.reserve(static_cast<std::size_t>(units_ * transposedStride()) *
                                         sizeof(float));
    if (!training) return;
    gradGates_ = Tensor::zeros({steps_, batch_, columns_});
    gradState_ = Tensor::zeros({batch_, units_});
    gradX_ = Tensor::zeros({steps_, batch_, features_});
  }

  void forward(const Tensor& x, const RecurrentWeights& weights, const Tensor& mask, Tensor& y) override {
    expect("x", x, shape_.input());
    expectWeights(weights);
    expectMask(mask);
    expect("y", y, shape_.output());
    loadInput(x, mask);
    spread(weights.bias);
    gemm(steps_ * batch_, columns_, features_, {x_.data<float>(), features_},
         {weights.input.data<float>(), features_, true}, 1, gates_.data<float>(), columns_);
    if (transposesWeights()) transpose(weights.recurrent);
    for (std::int64_t t = 0; t < steps_; ++t) forwardStep(t, weights, mask);
    storeOutput(mask, y);
  }

  void backward(const RecurrentWeights& weights, const Tensor& mask, const Tensor& gradY,
                RecurrentWeights& gradients, Tensor& gradX) override {
    require(gradGates_.defined(), "recurrent: backward() of a plan that is not for training");
    expectWeights(weights);
    expectMask(mask);
    expect("gradY", gradY, shape_.output());
    expectWeights(gradients);
    if (gradX.defined()) expect("gradX", gradX, shape_.input());
    startBackward(gradY);
    for (std::int64_t t = steps_; t-- > 0;) {
      if (shape_.sequences) addGradY(gradY, mask, t);
      backwardStep(t, weights, mask);
    }
    gradientsOfInput(gradients);
    gradientsOfRecurrence(gradients);
    if (!gradX.defined()) return;
    gemm(steps_ * batch_, features_, columns_, {gradGates_.data<float>(), columns_},
         {weights.input.data<float>(), features_}, 0, gradX_.data<float>(), features_);
    storeGradX(gradX);
  }

 protected:
  /// Computes gates and state of step t, whose gates hold the input's part.
  virtual void forwardStep(std::int64_t t, const RecurrentWeights& weights, const Tensor& mask) = 0;
  /// Turns the gradient of the state after step t into the gradients of the state before it and of its gates.
  virtual void backwardStep(std::int64_t t, const RecurrentWeights& weights, const Tensor& mask) = 0;
  virtual void startBackward(const Tensor& gradY) {
    if (shape_.sequences)
      std::ranges::fill(gradState_.span<float>(), 0.0f);
    else
      copy(gradY, gradState_, context_);
  }
  virtual void gradientsOfRecurrence(RecurrentWeights& gradients) = 0;

  /// Calls f(row of the step, whether it is real) for all examples at step t.
  template <typename F>
  void forEachRow(const Tensor& mask, std::int64_t t, F f) {
    const float* real = mask.defined() ? mask.data<float>() + t : nullptr;
    const std::int64_t steps = steps_;
    constexpr std::int64_t kLeastUnits = 2048;  // minimum per thread
    parallelFor(context_, batch_, std::max<std::int64_t>(1, kLeastUnits / units_),
                [=](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t n = begin; n < end; ++n) f(n, !real || real[n * steps] != 0);
                });
  }

  float* gates(std::int64_t t) const { return gates_.data<float>() + t * batch_ * columns_; }
  float* gradGates(std::int64_t t) const { return gradGates_.data<float>() + t * batch_ * columns_; }
  /// The state before step t (after step t - 1).
  float* states(std::int64_t t) const { return states_.data<float>() + t * batch_ * units_; }
  float* gradState() const { return gradState_.data<float>(); }

  /// to [N, columns] = (the state before step t) times the recurrent weights, + keep * to.
  void multiplyState(std::int64_t t, const RecurrentWeights& weights, float keep, float* to) {
    const Matrix factor = transposesWeights() ? Matrix{transposed(), transposedStride()}
                                              : Matrix{weights.recurrent.data<float>(), units_, true};
    gemm(batch_, columns_, units_, {states(t), units_}, factor, keep, to, columns_);
  }

  /// For `gradientOverSteps` of `rows` of the gates' gradients, or of others at a distance of `rowStride`.
  WeightGradient planGradient(std::int64_t rows, std::int64_t rowStride) const {
    const bool training = gradGates_.defined();
    return {training ? (steps_ - 1) * batch_ : 0, rows, rowStride, units_, context_};
  }

  /// gradient = gradOutputs^T (the states before the steps), over all steps in one product. Omits the first
  /// step, because the state before it is zero.
  /// @param first  the gradients of the outputs of step 1.
  void gradientOverSteps(WeightGradient& product, const float* first, std::int64_t rows, float* gradient) {
    if (steps_ == 1)
      std::fill_n(gradient, rows * units_, 0.0f);
    else
      product.run(first, states(1), gradient);
  }

  void sumSteps(const Tensor& values, std::int64_t columns, float* sums) {
    const float* from = values.data<float>();
    const std::int64_t rows = steps_ * batch_;
    parallelFor(context_, columns, 64, [=](std::int64_t begin, std::int64_t end) {
      dispatch<sumColumns>(from, sums, rows, columns, begin, end);
    });
  }

  Context& context_;
  std::int64_t batch_, steps_, features_, units_, columns_;  // columns: of all gates
  Tensor x_;                                                 // [T, N, F], zero where padded
  Tensor gates_;                                             // [T, N, columns]
  Tensor states_;                                            // [T + 1, N, units], first zero
  Tensor gradGates_;                                         // like gates_; training only
  Tensor gradState_;                                         // [N, units]; training only

 private:
  static void expect(const char* name, const Tensor& tensor, const Shape& shape) {
    muster::detail::expectTensor("recurrent", name, tensor, {shape});
  }
  void expectMask(const Tensor& mask) const {
    if (mask.defined()) expect("mask", mask, {batch_, steps_});
  }
  void expectWeights(const RecurrentWeights& weights) const {
    expect("input weight", weights.input, {columns_, features_});
    expect("recurrent weight", weights.recurrent, {columns_, units_});
    expect("bias", weights.bias, {columns_});
    if (shape_.cell == RecurrentCell::GRU) expect("recurrent bias", weights.recurrentBias, {units_});
  }

  void loadInput(const Tensor& x, const Tensor& mask) {
    const float* from = x.data<float>();
    float* to = x_.data<float>();
    const std::int64_t batch = batch_, steps = steps_, features = features_;
    for (std::int64_t t = 0; t < steps_; ++t)
      forEachRow(mask, t, [=](std::int64_t n, bool real) {
        float* row = to + (t * batch + n) * features;
        if (real)
          std::copy_n(from + (n * steps + t) * features, features, row);
        else
          std::fill_n(row, features, 0.0f);
      });
  }

  /// Copies the bias into all gates; the products are added to it.
  void spread(const Tensor& bias) {
    const float* from = bias.data<float>();
    float* to = gates_.data<float>();
    const std::int64_t columns = columns_;
    parallelFor(context_, steps_ * batch_, 16, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t n = begin; n < end; ++n) std::copy_n(from, columns, to + n * columns);
    });
  }

  void storeOutput(const Tensor& mask, Tensor& y) {
    if (!shape_.sequences) {
      std::copy_n(states(steps_), batch_ * units_, y.data<float>());
      return;
    }
    float* to = y.data<float>();
    const std::int64_t steps = steps_, units = units_;
    for (std::int64_t t = 0; t < steps_; ++t)
      forEachRow(mask, t, [=, from = states(t + 1)](std::int64_t n, bool real) {
        float* row = to + (n * steps + t) * units;
        if (real)
          std::copy_n(from + n * units, units, row);
        else
          std::fill_n(row, units, 0.0f);
      });
  }

  void addGradY(const Tensor& gradY, const Tensor& mask, std::int64_t t) {
    const std::int64_t steps = steps_, units = units_;
    forEachRow(mask, t, [=, from = gradY.data<float>(), to = gradState()](std::int64_t n, bool real) {
      if (!real) return;  // the output of padding is zero
      const float* add = from + (n * steps + t) * units;
      for (std::int64_t u = 0; u < units; ++u) to[n * units + u] += add[u];
    });
  }

  void gradientsOfInput(RecurrentWeights& gradients) {
    gradInput_.run(gradGates_.data<float>(), x_.data<float>(), gradients.input.data<float>());
    sumSteps(gradGates_, columns_, gradients.bias.data<float>());
  }

  void storeGradX(Tensor& gradX) {
    const float* from = gradX_.data<float>();
    float* to = gradX.data<float>();
    const std::int64_t batch = batch_, steps = steps_, features = features_;
    parallelFor(context_, batch_, 1, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t n = begin; n < end; ++n)
        for (std::int64_t t = 0; t < steps; ++t)
          std::copy_n(from + (t * batch + n) * features, features, to + (n * steps + t) * features);
    });
  }

  /// See Note [Transposed weights].
  bool transposesWeights() const { return steps_ >= 8; }
  std::int64_t transposedStride() const { return columns_ % 256 == 0 ? columns_ + 16 : columns_; }
  float* transposed() const { return reinterpret_cast<float*>(stateOf(context_).workspace.data()); }
  void transpose(const Tensor& weight) {
    const float* from = weight.data<float>();
    float* to = transposed();
    parallelFor(context_, columns_, 64, [=, this](std::int64_t begin, std::int64_t end) {
      dispatch<transposeRows>(from, to, units_, transposedStride(), begin, end);
    });
  }

  RecurrentShape shape_;
  WeightGradient gradInput_;
  Tensor gradX_;  // [T, N, F]; training only
};

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
    gradientOverSteps(gradRecurrent_, gradGates(1), columns_, gradients.recurrent.data<float>());
  }

  /// The cell before step t (after step t - 1).
  float* cells(std::int64_t t) const { return cells_.data<float>() + t * batch_ * units_; }

  WeightGradient gradRecurrent_;
  Tensor cells_;     // [T + 1, N, units], first zero
  Tensor gradCell_;  // [N, units]; training only
};

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
    gradientOverSteps(gradResetUpdate_, gradGates(1), 2 * units_, recurrent);
    gradientOverSteps(gradCandidate_, ofStep(gradCandidates_, 1), units_, recurrent + 2 * units_ * units_);
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

std::unique_ptr<RecurrentPlan> planRecurrent(const RecurrentShape& shape, bool training, Context& context) {
  fillSmallChunkCache();
  if (shape.cell == RecurrentCell::LSTM) return std::make_unique<LstmPlan>(shape, training, context);
  return std::make_unique<GruPlan>(shape, training, context);
}

}  // namespace muster::cpu
