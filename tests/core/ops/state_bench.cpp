// Passes over a model's whole state at the size of the MNIST network: an update and a merge, compared with a
// copy of as many bytes.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "muster/core/ops/merge.h"
#include "muster/core/ops/update.h"

using namespace muster;

namespace {

constexpr std::int64_t kParameters = 431104;
constexpr std::int64_t kResNet18 = 11'173'962;  // beyond the caches

Tensor filled(float value, std::int64_t elements = kParameters) {
  Tensor tensor = Tensor::empty({elements});
  for (auto& element : tensor.span<float>()) element = value;
  return tensor;
}

void copyOfAsManyBytes(benchmark::State& state, std::int64_t floats) {
  std::vector<float> from(static_cast<std::size_t>(floats / 2), 1.0f), to(from.size());
  for (auto pass : state) {
    std::memcpy(to.data(), from.data(), from.size() * sizeof(float));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * floats * 4);
}

void nesterovs(benchmark::State& state) {
  Context context;
  const std::int64_t elements = state.range(0);
  UpdateBlocks blocks{.parameters = filled(1, elements),
                      .gradients = filled(1e-6f, elements),
                      .state = {filled(0, elements), Tensor()}};
  const UpdateRange range{.begin = 0, .end = elements, .learningRate = 0.5f, .l2 = 5e-4f};
  const UpdateRule rule = update::NesterovsRule(0.9);
  const auto plan = planUpdate({.rule = rule}, elements, {&range, 1}, context);
  Tensor numbers = Tensor::zeros({kUpdateNumbers}, DType::Float64),
         penalty = Tensor::zeros({1}, DType::Float64);
  writeUpdateNumbers(rule, 1, 1, 1, numbers);
  plan->run(blocks, numbers, penalty);
  // At the start every weight is 1: l2/2 each.
  if (std::abs(*penalty.data<double>() / (2.5e-4 * static_cast<double>(elements)) - 1) > 1e-6)
    return state.SkipWithError("the penalty is wrong");
  for (auto pass : state) plan->run(blocks, numbers, penalty);
  state.SetBytesProcessed(state.iterations() * elements * 5 * 4);
}

void merge(benchmark::State& state) {
  Context context;
  const auto workers = static_cast<std::size_t>(state.range(0));
  std::vector<Tensor> replicas;
  std::vector<double> weights(workers, 1.0);
  for (std::size_t w = 0; w < workers; ++w) replicas.push_back(filled(static_cast<float>(w)));
  Tensor mergedCopy = filled(0);
  weightedMean(replicas, weights, mergedCopy, 0, kParameters, context);
  if (mergedCopy.data<float>()[7] != static_cast<float>(workers - 1) / 2)
    return state.SkipWithError("the mean is wrong");
  for (auto pass : state) weightedMean(replicas, weights, mergedCopy, 0, kParameters, context);
  state.SetBytesProcessed(state.iterations() * kParameters * static_cast<std::int64_t>(2 * workers + 1) * 4);
}

BENCHMARK(nesterovs)->Name("update Nesterovs, parameters")->Arg(kParameters)->Arg(kResNet18);
BENCHMARK_CAPTURE(copyOfAsManyBytes, update, kParameters * 5)->Name("copy of as many bytes as the update");
BENCHMARK(merge)->Name("merge, replicas")->Arg(2)->Arg(4)->Arg(8);
BENCHMARK_CAPTURE(copyOfAsManyBytes, merge, kParameters * 5)->Name("copy of as many bytes as merging 2");

}  // namespace
