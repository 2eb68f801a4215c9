#include "muster/core/ops/recurrent.h"

#include "tests/core/ops/test.h"

namespace muster {
namespace {

using test::Array;

struct RecurrentGolden {
  RecurrentCell cell;
  bool sequences;
  std::string_view mask;
  std::vector<double> y, gradX, gradInput, gradRecurrent, gradBias, gradRecurrentBias;
};

#include "tests/core/ops/recurrent_golden.inc"

constexpr std::int64_t kBatch = 3, kSteps = 4, kFeatures = 2, kUnits = 3;

/// As values() in recurrent_golden.py.
Tensor numbers(const Shape& shape, std::int64_t salt) {
  Tensor tensor = Tensor::empty(shape);
  for (std::int64_t i = 0; i < tensor.elements(); ++i)
    tensor.data<float>()[i] = static_cast<float>((5 * i * i + 3 * i + 7 * salt) % 17 - 8) / 16;
  return tensor;
}

Tensor maskNamed(std::string_view name) {
  if (name == "end") return Tensor::of({1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0}, {kBatch, kSteps});
  if (name == "anywhere") return Tensor::of({1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 1, 1}, {kBatch, kSteps});
  return {};
}

/// Each of a layer's parameters, made by `make(shape, number of the parameter)`.
template <typename F>
RecurrentWeights weightsOf(const RecurrentShape& s, F make) {
  RecurrentWeights weights{make(Shape{s.gates() * s.units, s.features}, 2),
                           make(Shape{s.gates() * s.units, s.units}, 3), make(Shape{s.gates() * s.units}, 4),
                           Tensor()};
  if (s.cell == RecurrentCell::GRU) weights.recurrentBias = make(Shape{s.units}, 5);
  return weights;
}

RecurrentWeights nanWeights(const RecurrentShape& shape) {
  return weightsOf(shape, [](const Shape& s, int) { return test::nanTensor(s); });
}

RecurrentWeights randomWeights(const RecurrentShape& shape, std::mt19937_64& random) {
  return weightsOf(
      shape, [&](const Shape& s, int) { return test::toTensor(test::randomArray(s, random, -0.5, 0.5)); });
}

std::vector<Tensor> tensorsOf(const RecurrentWeights& w) {
  if (!w.recurrentBias.defined()) return {w.input, w.recurrent, w.bias};
  return {w.input, w.recurrent, w.bias, w.recurrentBias};
}

/// All results of a plan.
struct Result {
  Tensor y, gradX;
  RecurrentWeights gradients;

  std::vector<Tensor> all() const {
    auto tensors = tensorsOf(gradients);
    tensors.insert(tensors.end(), {y, gradX});
    return tensors;
  }
};

Tensor moved(const Tensor& tensor, Device device) {
  return tensor.defined() ? copyTo(tensor, device) : tensor;
}

RecurrentWeights moved(const RecurrentWeights& w, Device device) {
  return {moved(w.input, device), moved(w.recurrent, device), moved(w.bias, device),
          moved(w.recurrentBias, device)};
}

/// A plan's inputs, on its device.
struct Inputs {
  Tensor x;
  RecurrentWeights weights;
  Tensor mask, gradY;

  Inputs on(Device device) const {
    return {moved(x, device), moved(weights, device), moved(mask, device), moved(gradY, device)};
  }
};

/// The output, on the CPU again.
Tensor forward(RecurrentPlan& plan, const RecurrentShape& shape, const Inputs& in, Context& context) {
  Tensor y = moved(test::nanTensor(shape.output()), context.device());
  plan.forward(in.x, in.weights, in.mask, y);
  context.synchronize();
  return moved(y, Device::cpu());
}

/// The gradients of the last forward pass, on the CPU again.
Result backward(RecurrentPlan& plan, const RecurrentShape& shape, const Inputs& in, Context& context) {
  RecurrentWeights gradients = moved(nanWeights(shape), context.device());
  Tensor gradX = moved(test::nanTensor(shape.input()), context.device());
  plan.backward(in.weights, in.mask, in.gradY, gradients, gradX);
  context.synchronize();
  return {Tensor(), moved(gradX, Device::cpu()), moved(gradients, Device::cpu())};
}

Result run(RecurrentPlan& plan, const RecurrentShape& shape, const Inputs& in, Context& context) {
  const Tensor y = forward(plan, shape, in, context);
  Result result = backward(plan, shape, in, context);
  result.y = y;
  return result;
}

/// Runs a new plan on tensors from the CPU.
Result run(const RecurrentShape& shape, const Inputs& in, Context& context) {
  return run(*planRecurrent(shape, true, context), shape, in.on(context.device()), context);
}

/// Element by element.
void addTo(RecurrentWeights& sums, const RecurrentWeights& parts) {
  const auto to = tensorsOf(sums), from = tensorsOf(parts);
  for (std::size_t k = 0; k < to.size(); ++k)
    std::ranges::transform(to[k].span<float>(), from[k].span<float>(), to[k].data<float>(), std::plus());
}

double error(const Tensor& tensor, const std::vector<double>& expected) {
  return test::maxError(tensor, Array(tensor.shape(), expected));
}

}  // namespace

TEST_IN_MATH_MODES("recurrent layers agree with a float64 script, masked or not, on any number of threads") {
  // A GPU's exp and tanh are two roundings off.
  const double tolerance = (Where::device().isCpu() ? 2e-7 : 1e-6) + 8 * Where::kProductError;
  const double gradientTolerance = (Where::device().isCpu() ? 1e-6 : 2e-6) + 16 * Where::kProductError;
  for (const auto& golden : kRecurrentGolden)
    for (const int threads : test::threadCounts<Where>({1, 2})) {
      INFO("mask ", golden.mask, ", sequences ", golden.sequences, ", gates ", gatesOf(golden.cell));
      const RecurrentShape shape{golden.cell, kBatch, kSteps, kFeatures, kUnits, golden.sequences};
      test::Place<Where> on(threads);
      const Tensor mask = maskNamed(golden.mask);
      // The contents of the padding must not matter.
      Tensor x = numbers(shape.input(), 1);
      for (std::int64_t i = 0; mask.defined() && i < mask.elements(); ++i)
        if (mask.data<float>()[i] == 0) std::fill_n(x.data<float>() + i * kFeatures, kFeatures, test::kNan);
      const auto result =
          run(shape, {x, weightsOf(shape, numbers), mask, numbers(shape.output(), 6)}, on.context);
      CHECK(error(result.y, golden.y) < tolerance);
      CHECK(error(result.gradX, golden.gradX) < gradientTolerance);
      CHECK(error(result.gradients.input, golden.gradInput) < gradientTolerance);
      CHECK(error(result.gradients.recurrent, golden.gradRecurrent) < gradientTolerance);
      CHECK(error(result.gradients.bias, golden.gradBias) < gradientTolerance);
      if (golden.cell == RecurrentCell::GRU)
        CHECK(error(result.gradients.recurrentBias, golden.gradRecurrentBias) < gradientTolerance);
    }
}

TEST_ON_DEVICES("a padded batch gives the results of each sequence alone") {
  std::mt19937_64 random(test::freshSeed());
  const std::vector<std::int64_t> lengths{9, 1, 5, 0, 9, 7};
  test::Place<Where> on;
  for (const auto cell : {RecurrentCell::LSTM, RecurrentCell::GRU})
    for (const auto& [features, units, sequences] :
         {std::tuple{5, 19, true}, {5, 19, false}, {8, 12, true}}) {  // in fours, on a GPU, or not
      const auto batch = static_cast<std::int64_t>(lengths.size());
      const RecurrentShape shape{cell, batch, 9, features, units, sequences};
      const auto weights = randomWeights(shape, random);
      const Tensor x = test::toTensor(test::randomArray(shape.input(), random));
      const Tensor gradY = test::toTensor(test::randomArray(shape.output(), random));
      Tensor mask = Tensor::zeros({batch, shape.steps});
      for (std::int64_t n = 0; n < batch; ++n)
        std::fill_n(mask.data<float>() + n * shape.steps, lengths[static_cast<std::size_t>(n)], 1.0f);
      const auto whole = run(shape, {x, weights, mask, gradY}, on.context);
      // Both compute the same sums, perhaps in another order. A gate's terms are inputs and states within
      // [-1, 1] times weights within [-1/2, 1/2), and a cell multiplies two gates. A step does not amplify
      // earlier errors, so the independent errors of n steps grow to sqrt n times one step's.
      const double gate = test::sumError(features + units + 1, test::kProduct / 2);
      const double tolerance = 2 * 2 * std::sqrt(static_cast<double>(shape.steps)) * gate;
      // Gradients of weights are sums over steps and examples.
      const double sumTolerance = std::sqrt(static_cast<double>(batch * shape.steps)) * tolerance;

      RecurrentWeights sums = weightsOf(shape, [](const Shape& s, int) { return Tensor::zeros(s); });
      for (std::int64_t n = 0; n < batch; ++n) {
        const std::int64_t length = lengths[static_cast<std::size_t>(n)];
        CAPTURE(length);
        const auto padded = [&](const Tensor& t) { return test::toArray(t.rows(n, n + 1)); };
        Array expectedY(whole.y.rows(n, n + 1).shape()), expectedX(whole.gradX.rows(n, n + 1).shape());
        if (length > 0) {
          RecurrentShape alone = shape;
          alone.batch = 1;
          alone.steps = length;
          const auto cut = [&, sequences = sequences](const Tensor& t) {
            return sequences || t.shape().rank() == 3 ? t.rows(n, n + 1)
                                                            .reshape({shape.steps, t.shape()[-1]})
                                                            .rows(0, length)
                                                            .reshape({1, length, t.shape()[-1]})
                                                      : t.rows(n, n + 1);
          };
          const Result one = run(alone, {cut(x), weights, {}, cut(gradY)}, on.context);
          std::ranges::copy(one.y.span<float>(), expectedY.values.begin());
          std::ranges::copy(one.gradX.span<float>(), expectedX.values.begin());
          addTo(sums, one.gradients);
        }
        CHECK(test::maxDifference(padded(whole.y), expectedY) < tolerance);
        CHECK(test::maxDifference(padded(whole.gradX), expectedX) < tolerance);
      }
      for (std::size_t k = 0; k < tensorsOf(sums).size(); ++k)
        CHECK(test::maxDifference(tensorsOf(whole.gradients)[k], test::toArray(tensorsOf(sums)[k])) <
              sumTolerance);
    }
}

TEST_IN_MATH_MODES("a recurrent plan gives the same bits at each run, and backward may be called again") {
  std::mt19937_64 random(test::freshSeed());
  for (const auto cell : {RecurrentCell::LSTM, RecurrentCell::GRU})
    for (const int threads : test::threadCounts<Where>({1, 3})) {
      test::Place<Where> on(threads);
      const RecurrentShape shape{cell, 13, 6, 10, 70, true};
      const auto plan = planRecurrent(shape, true, on.context);
      const auto weights = randomWeights(shape, random);
      const Tensor x = test::toTensor(test::randomArray(shape.input(), random));
      const Tensor gradY = test::toTensor(test::randomArray(shape.output(), random));
      const Inputs in = Inputs{x, weights, {}, gradY}.on(Where::device());
      const Result first = run(*plan, shape, in, on.context), second = run(*plan, shape, in, on.context);
      Result again = backward(*plan, shape, in, on.context);
      again.y = second.y;
      for (const Result& other : {second, again})
        CHECK(std::ranges::equal(other.all(), first.all(), test::sameBits));
      const auto inference = planRecurrent(shape, false, on.context);
      CHECK(test::sameBits(forward(*inference, shape, in, on.context), first.y));
    }
}

TEST_IN_MATH_MODES("large gates neither overflow nor give NaN, and NaN inputs give NaN") {
  test::Place<Where> on;
  for (const auto cell : {RecurrentCell::LSTM, RecurrentCell::GRU}) {
    const RecurrentShape shape{cell, 1, 3, 1, 2, true};
    const auto weights = weightsOf(shape, [](const Shape& s, int number) {
      Tensor tensor = numbers(s, number);
      for (float& value : tensor.span<float>()) value *= 1000;
      return tensor;
    });
    Tensor x = Tensor::of({5, -5, 1}, shape.input());
    const Result result = run(shape, {x, weights, {}, numbers(shape.output(), 6)}, on.context);
    for (const auto& tensor : result.all())
      CHECK(std::ranges::all_of(tensor.span<float>(), [](float v) { return std::isfinite(v); }));
    x.data<float>()[1] = test::kNan;
    const Tensor y = run(shape, {x, weights, {}, numbers(shape.output(), 6)}, on.context).y;
    CHECK(std::isfinite(y.data<float>()[1]));
    CHECK(std::isnan(y.data<float>()[5]));
  }
}

TEST_CASE("recurrent plans refuse sizes and tensors that do not fit by name") {
  Context context;
  CHECK_REFUSED(planRecurrent({RecurrentCell::LSTM, 2, 0, 3, 4}, true, context),
                "recurrent: expected sequences [N, T, F] of at least one step and at least one unit, got [2, "
                "0, 3] and 4 units");
  const RecurrentShape shape{RecurrentCell::GRU, 2, 5, 3, 4};
  const auto plan = planRecurrent(shape, false, context);
  auto weights = weightsOf(shape, numbers);
  Tensor x = Tensor::zeros(shape.input()), y = Tensor::zeros(shape.output());
  CHECK_REFUSED(plan->forward(y, weights, {}, y),
                "recurrent: x is float32 [2, 5, 4] on cpu, expected float32 [2, 5, 3] on cpu");
  CHECK_REFUSED(plan->forward(x, weights, Tensor::zeros({5, 2}), y),
                "recurrent: mask is float32 [5, 2] on cpu, expected float32 [2, 5] on cpu");
  CHECK_REFUSED(plan->backward(weights, {}, y, weights, x),
                "recurrent: backward() of a plan that is not for training");
  weights.recurrent = Tensor::zeros({3, 4});
  CHECK_THROWS_AS(plan->forward(x, weights, {}, y), InvalidArgument);
}

}  // namespace muster
