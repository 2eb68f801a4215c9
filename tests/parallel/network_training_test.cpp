// ParallelWrapper with networks: a graph with convolutions, dropout, several inputs and outputs, sequences of
// different lengths, shapes inferred from the first batch, frozen layers and per-layer learning rates.
#include <doctest/doctest.h>

#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/parallel/parallel_wrapper.h"
#include "tests/core/nn/batches.h"
#include "tests/support/arrays.h"
#include "tests/support/list_iterator.h"
#include "tests/support/state_bits.h"

using namespace muster;
using namespace muster::test;

namespace {

const Shape kImage{2, 6, 5};
constexpr std::int64_t kClasses = 3;

/// Two merged inputs, two weighted outputs, pooling, dropout, a layer with its own learning rate and a frozen
/// one; smooth, so that rounding is not amplified.
ComputationGraphConfiguration twoTasks(const Updater& updater) {
  ComputationGraphConfiguration graph{
      .seed = 9,
      .updater = updater,
      .l2 = 1e-3,
      .inputs = {{.name = "image", .shape = kImage}, {.name = "context", .shape = {5}}}};
  graph.add("seen", Conv2d{.outChannels = 3, .kernel = {3, 3}, .activation = Activation::Tanh}, {"image"});
  graph.add("pooled", AveragePool2d{}, {"seen"});
  graph.add("flat", Flatten{}, {"pooled"});
  graph.add("thinned", Dropout{.rate = 0.25}, {"flat"});
  graph.add("known", Layer(Dense{.units = 4, .activation = Activation::Tanh}).learningRate(0.5), {"context"});
  graph.add("fixed", Layer(Dense{.units = 2}).frozen(), {"context"});
  graph.add("both", Merge{}, {"thinned", "known", "fixed"});
  graph.addOutput(graph.add("digit", Output{.classes = kClasses}, {"both"}));
  graph.addOutput(
      graph.add("size",
                Output{.classes = 2, .loss = Loss::MeanSquaredError, .activation = Activation::Identity},
                {"both"}),
      0.3);
  return graph;
}

Batch taskBatch(std::int64_t examples, std::uint64_t seed) {
  Batch batch = classBatch(kImage, examples, kClasses, seed);
  batch.features.front().name = "image";
  batch.labels.front().name = "digit";
  const Batch other = targetBatch({5}, examples, 2, seed + 100);
  batch.features.push_back({"context", other.features.front().value});
  batch.labels.push_back({"size", other.labels.front().value});
  return batch;
}

/// Of the parameters.
double distanceBetween(Model& a, Model& b) {
  return euclideanDistance(a.block(BlockKind::Parameters).values, b.block(BlockKind::Parameters).values);
}

ParallelWrapper::Builder unpinned(Model& model, int workers, TrainingMode mode = TrainingMode::Averaging) {
  auto builder = ParallelWrapper::Builder(model);
  builder.workers(workers).trainingMode(mode).pinThreads(false);
  return builder;
}

/// Each step rounds by about 1e-7 of the parameters, and training accumulates these errors.
constexpr double kRounding = 1e-5;

/// Whole batches, and the same batches split among `workers` workers: into different sizes for averaging and
/// synchronous gradients, which weight them.
struct Halves {
  std::vector<Batch> joined, split;
};

template <typename MakeBatch>
Halves unevenBatches(int workers, int steps, MakeBatch makeBatch) {
  Halves data;
  for (int step = 0; step < steps; ++step) {
    std::vector<std::int64_t> sizes;
    std::int64_t examples = 0;
    for (int w = 0; w < workers; ++w) {
      sizes.push_back(1 + (3 * w + step) % 5);
      examples += sizes.back();
    }
    const Batch whole = data.joined.emplace_back(makeBatch(examples, static_cast<std::uint64_t>(step)));
    std::int64_t begin = 0;
    for (const auto size : sizes) {
      data.split.push_back(partOf(whole, begin, begin + size));
      begin += size;
    }
  }
  return data;
}

template <typename Net, typename Configuration>
void checkLikeOneWorker(const Configuration& configuration, int workers, TrainingMode mode,
                        const Halves& data) {
  INFO("workers ", workers, ", updater ", configuration.updater.type());
  Net many(configuration), one(configuration);
  many.init();
  one.init();
  ListIterator split(data.split), joined(data.joined);
  unpinned(many, workers, mode).build().fit(split, 2);
  one.fit(joined, 2);
  const auto start = std::make_unique<Net>(configuration);
  start->init();
  CHECK(many.iteration() == one.iteration());
  CHECK(distanceBetween(one, *start) > 100 * kRounding);  // the parameters have changed
  CHECK(distanceBetween(many, one) < kRounding);
}

/// A recurrent network over sequences of different lengths, with a loss at each step.
MultiLayerConfiguration overTime(const Updater& updater) {
  return {.seed = 4,
          .updater = updater,
          .inputShape = {6, 3},
          .layers = {LSTM{.units = 5}, SelfAttention{}, Output{.classes = kClasses, .perStep = true}}};
}

Batch paddedBatch(std::int64_t examples, std::uint64_t seed) {
  return sequenceBatch({6, 3}, examples, kClasses, seed, true);
}

/// So many batches of so many examples each.
ListIterator taskBatches(std::uint64_t count, std::int64_t examples) {
  std::vector<Batch> batches;
  for (std::uint64_t b = 0; b < count; ++b) batches.push_back(taskBatch(examples, b));
  return ListIterator(std::move(batches));
}

}  // namespace

TEST_CASE("W workers on a graph of two inputs and two outputs equal one worker on the joined batches") {
  for (const int workers : {2, 3, 4}) {
    const auto data = unevenBatches(workers, 10, taskBatch);
    for (const auto& updater :
         {Updater(Sgd{.learningRate = 0.1}), Updater(Nesterovs{.learningRate = 0.03})}) {
      auto graph = twoTasks(updater);
      checkLikeOneWorker<ComputationGraph>(graph, workers, TrainingMode::Averaging, data);
      graph.clipNorm = 0.5;
      checkLikeOneWorker<ComputationGraph>(graph, workers, TrainingMode::SynchronousGradients, data);
    }
    // Adam divides by the gradient's size: an epsilon larger than the default keeps rounding small.
    checkLikeOneWorker<ComputationGraph>(twoTasks(Adam{.learningRate = 0.01, .epsilon = 1e-2}), workers,
                                         TrainingMode::SynchronousGradients, data);
  }
}

TEST_CASE("one worker trains a network as it trains itself, bit for bit, at any frequency") {
  auto data = taskBatches(7, 4);
  const auto configuration = twoTasks(Adam{.learningRate = WarmUpSchedule{.iterations = 5, .then = 0.01}});
  ComputationGraph alone(configuration);
  alone.init();
  alone.fit(data, 2);
  for (const std::int64_t frequency : {1, 3, 50}) {
    ComputationGraph model(configuration);
    model.init();
    unpinned(model, 1).averagingFrequency(frequency).build().fit(data, 2);
    CHECK(stateBits(model) == stateBits(alone));
  }
}

TEST_CASE("a network has the same bits on every run, for one to four workers and for two threads a worker") {
  auto data = taskBatches(13, 16);
  for (const int workers : {1, 2, 3, 4})
    for (const int threads : {1, 2}) {
      INFO("workers ", workers, ", threads ", threads);
      const auto trained = [&] {
        ComputationGraph model(twoTasks(Nesterovs{.learningRate = 0.02}));
        model.init();
        unpinned(model, workers).threadsPerWorker(threads).averagingFrequency(3).build().fit(data, 2);
        return stateBits(model);
      };
      CHECK(trained() == trained());
    }
}

TEST_CASE("workers on sequences of different lengths are weighted by unmasked steps") {
  for (const int workers : {2, 3, 4}) {
    // The first example of each joined batch is only padding, and in every fifth step a worker has no other
    // example.
    const auto data = unevenBatches(workers, 10, paddedBatch);
    checkLikeOneWorker<MultiLayerNetwork>(overTime(Sgd{.learningRate = 0.2}), workers,
                                          TrainingMode::SynchronousGradients, data);
    checkLikeOneWorker<MultiLayerNetwork>(overTime(Nesterovs{.learningRate = 0.05}), workers,
                                          TrainingMode::SynchronousGradients, data);
    checkLikeOneWorker<MultiLayerNetwork>(overTime(Sgd{.learningRate = 0.2}), workers,
                                          TrainingMode::Averaging, data);
  }
}

TEST_CASE("a graph's input shapes come from the first batch, before the workers copy it") {
  auto data = taskBatches(9, 3);
  auto configuration = twoTasks(Nesterovs{.learningRate = 0.05});
  ComputationGraph known(configuration);
  known.init();
  unpinned(known, 3).averagingFrequency(2).build().fit(data);
  for (auto& input : configuration.inputs) input.shape = {};
  ComputationGraph open(configuration);
  unpinned(open, 3).averagingFrequency(2).build().fit(data);
  CHECK(open.configuration().inputs[0].shape == kImage);
  CHECK(open.configuration().inputs[1].shape == Shape{5});
  CHECK(stateBits(open) == stateBits(known));
}

TEST_CASE("frozen layers of a graph stay frozen in every mode, with their statistics") {
  auto data = taskBatches(8, 4);
  auto configuration = twoTasks(Nesterovs{.learningRate = 0.05});
  configuration.add("norm", Layer(BatchNorm{}).frozen(), {"both"});
  configuration.add("free", BatchNorm{}, {"norm"});
  for (auto& vertex : configuration.vertices)
    if (vertex.name == "digit" || vertex.name == "size") vertex.inputs = {"free"};
  for (const auto mode :
       {TrainingMode::Averaging, TrainingMode::SynchronousGradients, TrainingMode::SharedGradients}) {
    ComputationGraph model(configuration);
    model.init();
    const auto before = model.clone();
    unpinned(model, 2, mode).build().fit(data, 2);
    std::set<std::string> unchanged;
    for (const auto kind : {BlockKind::Parameters, BlockKind::Statistics})
      for (const Segment& segment : model.block(kind).segments->segments)
        if (std::ranges::equal(model.block(kind).segment(segment).span<float>(),
                               before->block(kind).segment(segment).span<float>()))
          unchanged.insert(segment.name);
    CHECK(unchanged == std::set<std::string>{"fixed.bias", "fixed.weight", "norm.beta", "norm.gamma",
                                             "norm.mean", "norm.variance"});
  }
}
