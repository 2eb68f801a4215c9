// The attention of a transformer block: batch 16, 128 steps, width 256, 8 heads, on one thread.
#include "muster/core/ops/attention.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/bench/tensors.h"

using namespace muster;
using bench::randomTensor;

namespace {

const AttentionShape kShape{.batch = 16, .steps = 128, .features = 256, .heads = 8};

/// Checks one feature of one step by a plain loop: a fast wrong result is not reported.
bool agrees(const Tensor& x, const Tensor& y) {
  const std::int64_t size = kShape.features / kShape.heads, example = 3, step = 70, head = 5;
  const auto at = [&](std::int64_t t, std::int64_t third, std::int64_t i) {
    return static_cast<double>(
        x.data<float>()[((example * kShape.steps + t) * 3 + third) * kShape.features + head * size + i]);
  };
  double sum = 0, weighted = 0;
  for (std::int64_t t = 0; t < kShape.steps; ++t) {
    double product = 0;
    for (std::int64_t i = 0; i < size; ++i) product += at(step, 0, i) * at(t, 1, i);
    const double weight = std::exp(product / std::sqrt(static_cast<double>(size)));
    sum += weight;
    weighted += weight * at(t, 2, 0);
  }
  const float found = y.data<float>()[(example * kShape.steps + step) * kShape.features + head * size];
  return std::abs(found - weighted / sum) < 1e-5;
}

void attention(benchmark::State& state, bool causal, bool back) {
  Context context;
  const ContextScope scope(context);
  AttentionShape shape = kShape;
  shape.causal = causal;
  const auto plan = planAttention(shape, true, context);
  const Tensor x = randomTensor(shape.input(), "x", 4), gradY = randomTensor(shape.output(), "gradY");
  Tensor y = Tensor::zeros(shape.output()), gradX = Tensor::zeros(shape.input());
  plan->forward(x, Tensor(), y);
  if (!causal && !agrees(x, y)) return state.SkipWithError("the result is wrong");
  for (auto step : state) {
    if (back)
      plan->backward(x, Tensor(), gradY, gradX);
    else
      plan->forward(x, Tensor(), y);
    benchmark::ClobberMemory();
  }
  // Products of [T, T] and [T, F]: two forward, four backward. A causal one needs half of them.
  const double products = (back ? 4 : 2) * (causal ? 0.5 : 1);
  state.counters["FLOP/s"] = benchmark::Counter(
      products * 2.0 * static_cast<double>(shape.batch * shape.steps * shape.steps * shape.features),
      benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK_CAPTURE(attention, forward, false, false)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(attention, backward, false, true)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(attention, causal forward, true, false)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(attention, causal backward, true, true)->Unit(benchmark::kMicrosecond);

}  // namespace
