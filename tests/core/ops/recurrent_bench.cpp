// An LSTM and a GRU of 256 units over 64 steps of 128 features, batch 32, on one thread; libtorch's LSTM of
// the same shape is tests/bench/libtorch_lstm.
#include "muster/core/ops/recurrent.h"

#include <benchmark/benchmark.h>

#include "tests/bench/tensors.h"

using namespace muster;

namespace {

Tensor random(const Shape& shape, std::string_view name) {
  return bench::randomTensor(shape, name, 1.0 / 8);
}

RecurrentWeights weightsOf(const RecurrentShape& shape) {
  const std::int64_t rows = shape.gates() * shape.units;
  return {random({rows, shape.features}, "input"), random({rows, shape.units}, "recurrent"),
          random({rows}, "bias"), random({shape.units}, "recurrentBias")};
}

/// Checks that the last example's output is that of a batch of it alone: a fast wrong result is not reported.
bool agrees(const RecurrentShape& shape, const Tensor& x, const RecurrentWeights& weights, const Tensor& y,
            Context& context) {
  RecurrentShape one = shape;
  one.batch = 1;
  Tensor expected = Tensor::zeros(one.output());
  const Tensor last = x.rows(shape.batch - 1, shape.batch);
  planRecurrent(one, false, context)->forward(last, weights, {}, expected);
  return bench::differences(y.rows(shape.batch - 1, shape.batch), expected, 1e-4f) == 0;
}

void step(benchmark::State& state, RecurrentCell cell, bool backward) {
  Context context;
  const ContextScope scope(context);
  const RecurrentShape shape{
      .cell = cell, .batch = 32, .steps = 64, .features = 128, .units = 256, .sequences = true};
  const auto plan = planRecurrent(shape, true, context);
  const auto weights = weightsOf(shape);
  auto gradients = weightsOf(shape);
  const Tensor x = random(shape.input(), "x"), gradY = random(shape.output(), "gradY");
  Tensor y = Tensor::zeros(shape.output()), gradX = Tensor::zeros(shape.input());
  plan->forward(x, weights, {}, y);
  if (!agrees(shape, x, weights, y, context)) return state.SkipWithError("the result is wrong");
  for (auto step : state) {
    plan->forward(x, weights, {}, y);
    if (backward) plan->backward(weights, {}, gradY, gradients, gradX);
    benchmark::ClobberMemory();
  }
  const double products =
      (cell == RecurrentCell::LSTM ? 4.0 : 3.0) *
      static_cast<double>(shape.batch * shape.steps * shape.units * (shape.features + shape.units));
  state.counters["FLOP/s"] =
      benchmark::Counter((backward ? 3 : 1) * 2 * products, benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK_CAPTURE(step, lstm_forward, RecurrentCell::LSTM, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(step, lstm_training, RecurrentCell::LSTM, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(step, gru_forward, RecurrentCell::GRU, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(step, gru_training, RecurrentCell::GRU, true)->Unit(benchmark::kMillisecond);

}  // namespace
