#include "muster/core/nn/recompute_statistics.h"

#include "muster/core/base/random.h"
#include "tests/core/nn/test.h"
#include "tests/support/rounding.h"

using namespace muster;
using namespace muster::test;

namespace {

constexpr std::int64_t kExamples = 30, kWidth = 4;

/// Example n's feature i; features have different means.
float feature(std::int64_t n, std::int64_t i) {
  return static_cast<float>(RandomStream(1, "x").normal(static_cast<std::uint64_t>(n * kWidth + i)) +
                            static_cast<double>(3 * i));
}

/// All examples, cut into batches of these sizes.
ListIterator data(const std::vector<std::int64_t>& sizes) {
  std::vector<Batch> batches;
  std::int64_t n = 0;
  for (const std::int64_t size : sizes) {
    std::vector<float> x, y;
    for (const std::int64_t end = n + size; n < end; ++n)
      for (std::int64_t i = 0; i < kWidth; ++i) {
        x.push_back(feature(n, i));
        if (i < 2) y.push_back(n % 2 == i ? 1 : 0);
      }
    batches.push_back(batchOf(Tensor::of(x, {size, kWidth}), Tensor::of(y, {size, 2})));
  }
  return ListIterator(std::move(batches));
}

MultiLayerNetwork network(bool normalised = true) {
  std::vector<Layer> layers;
  if (normalised) layers.emplace_back(BatchNorm{});
  layers.emplace_back(Dense{.units = 5, .activation = Activation::Tanh});
  if (normalised) layers.emplace_back(BatchNorm{.momentum = 0.01});
  layers.emplace_back(Output{.classes = 2});
  return MultiLayerNetwork({.updater = Sgd{.learningRate = 0.1}, .inputShape = {kWidth}, .layers = layers});
}

std::vector<float> statisticsOf(Model& model) {
  for (auto& block : model.blocks())
    if (block.kind == BlockKind::Statistics) return floatsOf(block.values);
  return {};
}

}  // namespace

TEST_CASE("the first layer's statistics are those of all examples, whatever the batch size") {
  double mean[kWidth] = {}, square[kWidth] = {};
  for (std::int64_t n = 0; n < kExamples; ++n)
    for (std::int64_t i = 0; i < kWidth; ++i) {
      mean[i] += feature(n, i) / static_cast<double>(kExamples);
      square[i] += std::pow(feature(n, i), 2) / static_cast<double>(kExamples);
    }
  for (const auto& sizes : {std::vector<std::int64_t>{30}, {10, 10, 10}, {2, 3, 5, 20}, {28, 2}}) {
    auto model = network();
    model.init();
    auto all = data(sizes);
    recomputeStatistics(model, all);
    CHECK(all.epochs == std::vector<std::int64_t>{0});
    const auto& block = model.block(BlockKind::Statistics);
    const Tensor means = block.segment("batchnorm1.mean"), variances = block.segment("batchnorm1.variance");
    for (std::int64_t i = 0; i < kWidth; ++i) {
      // A batch's numbers are float64 sums, rounded to float32 once; the variance's rounding is of numbers up
      // to the largest variance of a batch and squared distance of a batch's mean.
      CHECK(std::abs(means.data<float>()[i] - mean[i]) <= roundings(2, std::abs(mean[i]) + 2));
      CHECK(std::abs(variances.data<float>()[i] - (square[i] - mean[i] * mean[i])) <= roundings(8, 12));
    }
  }
}

TEST_CASE("only the statistics change, and a second pass gives the same bits") {
  auto model = network();
  auto all = data({10, 20});
  model.fit(all, 3);
  const auto before = stateBits(model);
  const auto trained = statisticsOf(model);
  recomputeStatistics(model, all);
  const auto recomputed = statisticsOf(model);
  CHECK(recomputed != trained);
  recomputeStatistics(model, all);
  CHECK(statisticsOf(model) == recomputed);
  for (auto& block : model.blocks())
    if (block.kind == BlockKind::Statistics) std::ranges::copy(trained, block.values.data<float>());
  CHECK(stateBits(model) == before);
}

TEST_CASE("without running statistics no data are read, and a failure leaves the statistics as they were") {
  auto plain = network(false);
  plain.init();
  auto all = data({30});
  recomputeStatistics(plain, all);
  CHECK(all.epochs.empty());
  auto model = network();
  model.init();
  const auto before = stateBits(model);
  ListIterator none({});
  CHECK_REFUSED(recomputeStatistics(model, none), "recompute statistics: the data set has no examples");
  auto single = data({10, 1});  // of one example there is no variance
  CHECK_THROWS_AS(recomputeStatistics(model, single), InvalidArgument);
  CHECK(stateBits(model) == before);
}
