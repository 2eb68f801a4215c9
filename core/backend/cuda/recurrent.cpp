#include "muster/core/ops/recurrent.h"

#include <algorithm>
#include <optional>

#include "muster/core/backend/cuda/kernels/channel_sums.h"
#include "muster/core/backend/cuda/kernels/elementwise.h"
#include "muster/core/backend/cuda/kernels/sequence.h"
#include "muster/core/backend/cuda/matmul.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

namespace muster::cuda {
namespace {

Tensor emptyOn(const State& state, const Shape& shape) {
  return Tensor::empty(shape, DType::Float32, state.device());
}

/// The products of a layer, time first. A step's rows follow those of the previous step, so a step's size
/// decides their alignment.
struct Products {
  Products(State& state, MathMode mode, const RecurrentShape& s, bool training)
      : inputWithBias(state, mode, forwardInput(s), Epilogue::Bias),
        input(state, mode, forwardInput(s), Epilogue::None),
        recurrent(state, mode,
                  {.rows = s.batch,
                   .columns = s.gates() * s.units,
                   .inner = s.units,
                   .transposeB = true,
                   .alignment = alignmentOf(s),
                   .resultAlignment = alignmentOf(s)},
                  Epilogue::None) {
    if (!training) return;
    const std::int64_t rows = s.steps * s.batch, columns = s.gates() * s.units;
    const std::uint32_t alignment = alignmentOf(s);
    gradState.emplace(
        state, mode,
        MatmulShape{.rows = s.batch, .columns = s.units, .inner = columns, .alignment = alignment},
        Epilogue::None);
    gradInput.emplace(state, mode, MatmulShape{.rows = rows, .columns = s.features, .inner = columns},
                      Epilogue::None);
    inputWeight.emplace(
        state, mode, MatmulShape{.rows = columns, .columns = s.features, .inner = rows, .transposeA = true},
        Epilogue::None);
    if (s.steps == 1) return;  // the states before the first step are zero
    stateWeight.emplace(state, mode,
                        MatmulShape{.rows = columns,
                                    .columns = s.units,
                                    .inner = rows - s.batch,
                                    .transposeA = true,
                                    .alignment = alignment},
                        Epilogue::None);
  }

  static MatmulShape forwardInput(const RecurrentShape& s) {
    return {
        .rows = s.steps * s.batch, .columns = s.gates() * s.units, .inner = s.features, .transposeB = true};
  }
  static std::uint32_t alignmentOf(const RecurrentShape& s) {
    const std::int64_t numbers = s.batch * s.units;
    return numbers % 4 == 0 ? 16 : numbers % 2 == 0 ? 8 : 4;
  }

  Matmul inputWithBias, input;  // of all steps: gates = x W^T (+ b)
  Matmul recurrent;             // of a step: gates or products = h U^T
  std::optional<Matmul> gradState, gradInput, inputWeight, stateWeight;  // training only
};

/// The products' factors in the math mode's type.
struct Factors {
  Factors(const State& state, MathMode mode, const RecurrentShape& s, bool training)
      : input(s.steps * s.batch * s.features, state, mode),
        inputWeight(s.gates() * s.units * s.features, state, mode),
        stateWeight(s.gates() * s.units * s.units, state, mode),
        step(s.batch * s.units, state, mode),
        gradStep(training ? s.batch * s.gates() * s.units : 0, state, mode),
        gradGates(training ? s.steps * s.batch * s.gates() * s.units : 0, state, mode),
        gradProducts(training ? (s.steps - 1) * s.batch * s.gates() * s.units : 0, state, mode),
        states(training ? (s.steps - 1) * s.batch * s.units : 0, state, mode) {}
  Factor input, inputWeight, stateWeight, step, gradStep, gradGates, gradProducts, states;
};

/// Shared by the cells: memory order, masks, and the products over all steps. All internal tensors are [T, N,
/// ...], as on the CPU.
class RecurrentLoop : public RecurrentPlan {
 public:
  RecurrentLoop(const RecurrentShape& s, bool training, MathMode mode, Context& context)
      : shape_(s),
        context_(context),
        columns_(s.gates() * s.units),
        products_(stateOf(context), mode, s, training),
        factors_(stateOf(context), mode, s, training),
        x_(emptyOn(stateOf(context), {s.steps, s.batch, s.features})),
        gates_(emptyOn(stateOf(context), {s.steps, s.batch, columns_})),
        states_(Tensor::zeros({s.steps + 1, s.batch, s.units}, DType::Float32, context.device())) {
    if (!training) return;
    gradGates_ = emptyOn(stateOf(context), gates_.shape());
    gradState_ = emptyOn(stateOf(context), {s.batch, s.units});
    gradX_ = emptyOn(stateOf(context), x_.shape());
  }

  void forward(const Tensor& x, const RecurrentWeights& weights, const Tensor& mask, Tensor& y) override {
    expect("x", x, shape_.input());
    expectWeights(weights);
    expectMask(mask);
    expect("y", y, shape_.output());
    MUSTER_CUDA_CHECK(
        launchTimeFirst(sequences(shape_.features, mask), x.data<float>(), x_.data<float>(), stream()));
    gatesOfInput(weights);
    const void* const stateWeight = factors_.stateWeight.of(weights.recurrent, stream());
    for (std::int64_t t = 0; t < shape_.steps; ++t) forwardStep(t, weights, stateWeight, callFor(t, mask));
    if (!shape_.sequences)
      MUSTER_CUDA_CHECK(launchScale(1, states(shape_.steps), y.data<float>(), y.elements(), stream()));
    else
      MUSTER_CUDA_CHECK(
          launchBatchFirst(sequences(shape_.units, mask), states(1), y.data<float>(), stream()));
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
    const void* const stateWeight = factors_.stateWeight.of(weights.recurrent, stream());
    for (std::int64_t t = shape_.steps; t-- > 0;) {
      backwardStep(t, callFor(t, mask), shape_.sequences ? gradY.data<float>() : nullptr);
      if (t > 0)
        products_.gradState->add(factors_.gradStep.of(gradProducts(t), stream()), stateWeight,
                                 gradState_.data<float>());
    }
    const void* const gradGates = factors_.gradGates.of(gradGates_, stream());
    products_.inputWeight->run(gradGates, factors_.input.of(x_, stream()), nullptr,
                               gradients.input.data<float>());
    MUSTER_CUDA_CHECK(launchChannelSums({shape_.steps * shape_.batch, columns_, 1}, gradGates_.data<float>(),
                                        gradients.bias.data<float>(), partialSums(), stream()));
    gradientsOfRecurrence(gradients);
    if (!gradX.defined()) return;
    products_.gradInput->run(gradGates, factors_.inputWeight.of(weights.input, stream()), nullptr,
                             gradX_.data<float>());
    MUSTER_CUDA_CHECK(launchBatchFirst(sequences(shape_.features, mask), gradX_.data<float>(),
                                       gradX.data<float>(), stream()));
  }

 protected:
  /// Computes gates and states of step t, whose gates hold the input's part.
  virtual void forwardStep(std::int64_t t, const RecurrentWeights& weights, const void* stateWeight,
                           const StepCall& call) = 0;
  /// Turns the gradient of the state after step t into the gradients of the state before it (without the part
  /// through the product) and of its gates.
  /// @param gradY  null if only the last state was the output.
  virtual void backwardStep(std::int64_t t, const StepCall& call, const float* gradY) = 0;
  virtual void startBackward(const Tensor& gradY) {
    shape_.sequences ? setZero(gradState_, context_) : copy(gradY, gradState_, context_);
  }
  virtual void gradientsOfRecurrence(RecurrentWeights& gradients) {
    if (products_.stateWeight)
      products_.stateWeight->run(factors_.gradProducts.of(gradProducts(1), stream()),
                                 factors_.states.of(states(1), stream()), nullptr,
                                 gradients.recurrent.data<float>());
    else
      setZero(gradients.recurrent, context_);
  }
  /// The gradient of the state's part of step t's gates, [N, columns].
  virtual float* gradProducts(std::int64_t t) const { return ofStep(gradGates_, t); }

  cudaStream_t stream() const { return stateOf(context_).stream(); }
  PartialSums partialSums() const { return stateOf(context_).partialSums(); }
  /// The rows of step t of a tensor [T, N, ...].
  float* ofStep(const Tensor& tensor, std::int64_t t) const {
    return tensor.data<float>() + t * shape_.batch * tensor.shape()[2];
  }
  /// The states before step t (after step t - 1).
  float* states(std::int64_t t) const { return ofStep(states_, t); }
  const void* stateFactor(std::int64_t t) const { return factors_.step.of(states(t), stream()); }

  RecurrentShape shape_;
  Context& context_;
  std::int64_t columns_;  // of all gates
  Products products_;
  Factors factors_;
  Tensor x_;          // [T, N, F], zero where padded
  Tensor gates_;      // [T, N, columns]
  Tensor states_;     // [T + 1, N, units], first zero
  Tensor gradGates_;  // like gates_; training only
  Tensor gradState_;  // [N, units]; training only
  Tensor gradX_;      // like x_; training only

 private:
  void gatesOfInput(const RecurrentWeights& weights) {
    const void* const x = factors_.input.of(x_, stream());
    const void* const w = factors_.inputWeight.of(weights.input, stream());
    const float* const bias = weights.bias.data<float>();
    if (products_.inputWithBias.supported())
      return products_.inputWithBias.run(x, w, bias, gates_.data<float>());
    products_.input.run(x, w, nullptr, gates_.data<float>());
    MUSTER_CUDA_CHECK(launchAddBias(bias, gates_.data<float>(), {gates_.elements() / columns_, columns_, 1},
                                    /*relu=*/false, stream()));
  }

  SequenceCall sequences(std::int64_t features, const Tensor& mask) const {
    return {shape_.batch, shape_.steps, features, mask.defined() ? mask.data<float>() : nullptr};
  }
  StepCall callFor(std::int64_t t, const Tensor& mask) const {
    return {shape_.batch, shape_.units, shape_.steps, t, mask.defined() ? mask.data<float>() : nullptr};
  }

  void expect(const char* name, const Tensor& tensor, const Shape& shape) const {
    muster::detail::expectTensor("recurrent", name, tensor,
                                 {shape, Layout::RowMajor, DType::Float32, context_.device()});
  }
  void expectMask(const Tensor& mask) const {
    if (mask.defined()) expect("mask", mask, {shape_.batch, shape_.steps});
  }
  void expectWeights(const RecurrentWeights& weights) const {
    expect("input weight", weights.input, {columns_, shape_.features});
    expect("recurrent weight", weights.recurrent, {columns_, shape_.units});
    expect("bias", weights.bias, {columns_});
    if (shape_.cell == RecurrentCell::GRU) expect("recurrent bias", weights.recurrentBias, {shape_.units});
  }
};

class LstmPlan final : public RecurrentLoop {
 public:
  LstmPlan(const RecurrentShape& shape, bool training, MathMode mode, Context& context)
      : RecurrentLoop(shape, training, mode, context),
        cells_(Tensor::zeros(states_.shape(), DType::Float32, context.device())) {
    if (training) gradCell_ = emptyOn(stateOf(context), gradState_.shape());
  }

 private:
  void forwardStep(std::int64_t t, const RecurrentWeights&, const void* stateWeight,
                   const StepCall& call) override {
    float* const gates = ofStep(gates_, t);
    if (t > 0) products_.recurrent.add(stateFactor(t), stateWeight, gates);
    MUSTER_CUDA_CHECK(launchLstmStep(call, gates, ofStep(cells_, t), ofStep(cells_, t + 1), states(t),
                                     states(t + 1), stream()));
  }

  void startBackward(const Tensor& gradY) override {
    RecurrentLoop::startBackward(gradY);
    setZero(gradCell_, context_);
  }

  void backwardStep(std::int64_t t, const StepCall& call, const float* gradY) override {
    MUSTER_CUDA_CHECK(launchLstmStepBackward(call, ofStep(gates_, t), ofStep(cells_, t),
                                             ofStep(cells_, t + 1), gradY, gradState_.data<float>(),
                                             gradCell_.data<float>(), ofStep(gradGates_, t), stream()));
  }

  Tensor cells_;     // [T + 1, N, units], first zero
  Tensor gradCell_;  // [N, units]; training only
};

/// The gradients of the input's and of the state's part are equal for r and z and differ by a factor r for n.
/// Both are stored completely, so that each product covers all gates.
class GruPlan final : public RecurrentLoop {
 public:
  GruPlan(const RecurrentShape& shape, bool training, MathMode mode, Context& context)
      : RecurrentLoop(shape, training, mode, context),
        stateParts_(emptyOn(stateOf(context), {shape.batch, columns_})),
        candidates_(emptyOn(stateOf(context), {shape.steps, shape.batch, shape.units})) {
    if (!training) return;
    gradProducts_ = emptyOn(stateOf(context), gates_.shape());
    biasSums_ = emptyOn(stateOf(context), {columns_});
  }

 private:
  void forwardStep(std::int64_t t, const RecurrentWeights& weights, const void* stateWeight,
                   const StepCall& call) override {
    float* const parts = t > 0 ? stateParts_.data<float>() : nullptr;
    if (parts) products_.recurrent.run(stateFactor(t), stateWeight, nullptr, parts);
    MUSTER_CUDA_CHECK(launchGruStep(call, ofStep(gates_, t), parts, weights.recurrentBias.data<float>(),
                                    ofStep(candidates_, t), states(t), states(t + 1), stream()));
  }

  void backwardStep(std::int64_t t, const StepCall& call, const float* gradY) override {
    MUSTER_CUDA_CHECK(launchGruStepBackward(call, ofStep(gates_, t), ofStep(candidates_, t), states(t), gradY,
                                            gradState_.data<float>(), ofStep(gradGates_, t), gradProducts(t),
                                            stream()));
  }

  void gradientsOfRecurrence(RecurrentWeights& gradients) override {
    RecurrentLoop::gradientsOfRecurrence(gradients);
    MUSTER_CUDA_CHECK(launchChannelSums({shape_.steps * shape_.batch, columns_, 1}, gradProducts(0),
                                        biasSums_.data<float>(), partialSums(), stream()));
    copy(biasSums_.rows(2 * shape_.units, columns_), gradients.recurrentBias, context_);
  }

  float* gradProducts(std::int64_t t) const override { return ofStep(gradProducts_, t); }

  Tensor stateParts_;    // [N, columns], of one step
  Tensor candidates_;    // [T, N, units]: Un h + un
  Tensor gradProducts_;  // like gates_; training only
  Tensor biasSums_;      // [columns], only those of n are used; training only
};

}  // namespace

std::unique_ptr<RecurrentPlan> planRecurrent(const RecurrentShape& shape, bool training, Context& context) {
  return planProducts(stateOf(context), [&](MathMode mode) -> std::unique_ptr<RecurrentPlan> {
    if (shape.cell == RecurrentCell::LSTM) return std::make_unique<LstmPlan>(shape, training, mode, context);
    return std::make_unique<GruPlan>(shape, training, mode, context);
  });
}

}  // namespace muster::cuda
