// Operations that read and write every element of [128, 500] once or twice, and the loss of [128, 10]. The
// same for the sizes of a transformer block: batch 16, 128 steps, width 256.
#include <benchmark/benchmark.h>

#include <random>

#include "muster/core/ops/activation.h"
#include "muster/core/ops/dropout.h"
#include "muster/core/ops/elementwise.h"
#include "muster/core/ops/layer_norm.h"
#include "muster/core/ops/loss.h"

using namespace muster;

namespace {

constexpr std::int64_t kRows = 128, kFeatures = 500;

Tensor normals(std::int64_t features = kFeatures, std::int64_t rows = kRows) {
  Tensor tensor = Tensor::empty({rows, features});
  std::mt19937 engine(1);
  std::normal_distribution<float> normal;
  for (auto& element : tensor.span<float>()) element = normal(engine);
  return tensor;
}

/// Tensors larger than the second cache also count the bytes of the `passes` tensors that are read or
/// written.
void count(benchmark::State& state, const Tensor& x, int passes) {
  state.SetItemsProcessed(state.iterations() * x.elements());
  if (x.bytes() >= std::size_t{1} << 20)
    state.SetBytesProcessed(state.iterations() * passes * static_cast<std::int64_t>(x.bytes()));
}

void activations(benchmark::State& state, Activation activation, bool back, std::int64_t rows = kRows,
                 std::int64_t features = kFeatures) {
  Context context;
  const Tensor x = normals(features, rows), gradY = normals(features, rows);
  Tensor y = Tensor::empty(x.shape()), gradX = Tensor::empty(x.shape());
  activationForward(activation, x, y, context);
  const bool ofInput = activation == Activation::GELU;
  for (auto pass : state)
    if (back)
      activationBackward(activation, ofInput ? x : Tensor(), y, gradY, gradX, context);
    else
      activationForward(activation, x, y, context);
  count(state, x, back ? 3 : 2);
}

void dropouts(benchmark::State& state, std::int64_t rows, std::int64_t features) {
  Context context;
  const Tensor x = normals(features, rows);
  Tensor y = Tensor::empty(x.shape());
  const RandomStream random(1, "dropout");
  for (auto pass : state) dropout(x, y, 0.5, random, 0, context);
  count(state, x, 2);
}

void losses(benchmark::State& state, bool classes, std::int64_t features,
            Loss kind = Loss::NegativeLogLikelihood) {
  Context context;
  const Tensor x = normals(features);
  Tensor labels = classes ? Tensor::zeros({kRows}, DType::Int64) : Tensor::empty(x.shape());
  if (!classes)
    for (auto& label : labels.span<float>()) label = 1.0f / static_cast<float>(features);
  Tensor gradient = Tensor::empty(x.shape());
  double sum = 0;
  for (auto pass : state) sum += loss(kind, x, labels, Tensor(), gradient, 0, context).sum;
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(state.iterations() * x.elements());
}

void sums(benchmark::State& state, std::int64_t rows, std::int64_t features) {
  Context context;
  const Tensor x[] = {normals(features, rows), normals(features, rows)};
  Tensor y = Tensor::empty(x[0].shape());
  for (auto pass : state) combine(Combination::Add, x, y, context);
  count(state, y, 3);
}

void layerNorms(benchmark::State& state, bool back, std::int64_t rows = kRows,
                std::int64_t features = kFeatures) {
  Context context;
  const auto plan = planLayerNorm({.rows = rows, .features = features}, context);
  const Tensor x = normals(features, rows), gradY = normals(features, rows),
               gamma = Tensor::zeros({features}), beta = Tensor::zeros({features});
  Tensor y = Tensor::empty(x.shape()), gradX = Tensor::empty(x.shape()),
         gradGamma = Tensor::empty({features}), gradBeta = Tensor::empty({features});
  plan->forward(x, gamma, beta, y);
  for (auto pass : state)
    if (back)
      plan->backward(x, gamma, gradY, gradX, gradGamma, gradBeta);
    else
      plan->forward(x, gamma, beta, y);
  count(state, x, back ? 3 : 2);
}

BENCHMARK_CAPTURE(activations, GELU, Activation::GELU, false);
BENCHMARK_CAPTURE(activations, GELU backward, Activation::GELU, true);
BENCHMARK_CAPTURE(activations, tanh, Activation::Tanh, false);
BENCHMARK_CAPTURE(activations, sigmoid, Activation::Sigmoid, false);
BENCHMARK_CAPTURE(activations, softmax, Activation::Softmax, false);
BENCHMARK_CAPTURE(activations, softmax backward, Activation::Softmax, true);
BENCHMARK_CAPTURE(dropouts, dropout, kRows, kFeatures);
BENCHMARK_CAPTURE(losses, 10 classes, true, 10);
BENCHMARK_CAPTURE(losses, 500 classes, true, kFeatures);
BENCHMARK_CAPTURE(losses, 500 probabilities, false, kFeatures);
BENCHMARK_CAPTURE(losses, 500 squares, false, kFeatures, Loss::MeanSquaredError);
BENCHMARK_CAPTURE(losses, 500 binary, false, kFeatures, Loss::BinaryCrossEntropy);
BENCHMARK_CAPTURE(layerNorms, forward, false);
BENCHMARK_CAPTURE(layerNorms, backward, true);

constexpr std::int64_t kSteps = 16 * 128, kWidth = 256;
BENCHMARK_CAPTURE(activations, block GELU, Activation::GELU, false, kSteps, 4 * kWidth);
BENCHMARK_CAPTURE(activations, block GELU backward, Activation::GELU, true, kSteps, 4 * kWidth);
BENCHMARK_CAPTURE(activations, block softmax, Activation::Softmax, false, 8 * kSteps, 128);
BENCHMARK_CAPTURE(activations, block softmax backward, Activation::Softmax, true, 8 * kSteps, 128);
BENCHMARK_CAPTURE(dropouts, block dropout, kSteps, kWidth);
BENCHMARK_CAPTURE(layerNorms, block forward, false, kSteps, kWidth);
BENCHMARK_CAPTURE(layerNorms, block backward, true, kSteps, kWidth);
BENCHMARK_CAPTURE(sums, block sum, kSteps, kWidth);

}  // namespace

BENCHMARK_MAIN();
