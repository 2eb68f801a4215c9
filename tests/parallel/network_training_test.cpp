// ParallelWrapper with networks: convolutions with dropout, a graph with several inputs and outputs,
// sequences of different lengths, shapes inferred from the first batch, frozen layers and per-layer learning
// rates.
#include <doctest/doctest.h>

#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/parallel/parallel_wrapper.h"
#include "tests/core/nn/batches.h"
#include "tests/support/list_iterator.h"
#include "tests/support/state_bits.h"

using namespace muster;
using namespace muster::test;

namespace {

const Shape kImage{2, 6, 5};
constexpr std::int64_t kClasses = 3;

/// Two merged inputs, two weighted outputs; smooth, so that rounding is not amplified.
ComputationGraphConfiguration twoTasks(const Updater& updater) {
  ComputationGraphConfiguration graph{
      .seed = 9,
      .updater = updater,
      .l2 = 1e-3,
      .inputs = {{.name = "image", .shape = kImage}, {.name = "context", .shape = {5}}}};
  graph.add("seen", Conv2d{.outChannels = 3, .kernel = {3, 3}, .activation = Activation::Tanh}, {"image"});
  graph.add("flat", Flatten{}, {"seen"});
  graph.add("known", Dense{.units = 4, .activation = Activation::Tanh}, {"context"});
  graph.add("both", Merge{}, {"flat", "known"});
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

/// Splits the batch into consecutive pieces of these sizes.
std::vector<Batch> pieces(const Batch& whole, const std::vector<std::int64_t>& sizes) {
  std::vector<Batch> parts;
  std::int64_t begin = 0;
  for (const auto size : sizes) {
    parts.push_back(partOf(whole, begin, begin + size));
    begin += size;
  }
  REQUIRE(begin == whole.examples());
  return parts;
}

/// |a - b| / |b|, Euclidean.
double distance(const StateBlock& a, const StateBlock& b) {
  const auto x = a.values.span<float>(), y = b.values.span<float>();
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    difference += std::pow(static_cast<double>(x[i]) - y[i], 2);
    norm += std::pow(static_cast<double>(y[i]), 2);
  }
  return std::sqrt(difference / norm);
}

/// Distance of the parameters.
double distance(Model& a, Model& b) {
  return distance(a.block(BlockKind::Parameters), b.block(BlockKind::Parameters));
}

ParallelWrapper::Builder wrapperOf(Model& model, int workers, TrainingMode mode = TrainingMode::Averaging) {
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
    const Batch whole = makeBatch(examples, static_cast<std::uint64_t>(step));
    data.joined.push_back(whole);
    for (auto& part : pieces(whole, sizes)) data.split.push_back(std::move(part));
  }
  return data;
}

template <typename Net, typename Configuration>
void checkLikeOneWorker(const Configuration& configuration, int workers, TrainingMode mode,
                        const Halves& data) {
  CAPTURE(workers);
  CAPTURE(configuration.updater.type());
  Net many(configuration), one(configuration);
  many.init();
  one.init();
  ListIterator split(data.split), joined(data.joined);
  wrapperOf(many, workers, mode).build().fit(split, 2);
  one.fit(joined, 2);
  const auto start = std::make_unique<Net>(configuration);
  start->init();
  CHECK(many.iteration() == one.iteration());
  CHECK(distance(one, *start) > 100 * kRounding);  // the parameters have changed
  CHECK(distance(many, one) < kRounding);
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

/// Dropout, pooling, clipping; smooth, as `twoTasks`.
MultiLayerConfiguration convolving(const Updater& updater) {
  return {.seed = 9,
          .updater = updater,
          .l2 = 1e-3,
          .inputShape = kImage,
          .layers = {Conv2d{.outChannels = 6, .kernel = {3, 3}, .activation = Activation::Tanh},
                     AveragePool2d{}, Dropout{.rate = 0.25},
                     Dense{.units = 20, .activation = Activation::Tanh}, Output{.classes = kClasses}}};
}
Batch imageBatch(std::int64_t examples, std::uint64_t seed) {
  return classBatch(kImage, examples, kClasses, seed);
}

template <typename Net, typename Configuration, typename MakeBatch>
void checkOneWorkerAlone(const Configuration& configuration, MakeBatch makeBatch) {
  std::vector<Batch> batches;
  for (std::uint64_t b = 0; b < 7; ++b) batches.push_back(makeBatch(4, b));
  ListIterator data(batches);
  Net alone(configuration);
  alone.init();
  alone.fit(data, 2);
  for (const std::int64_t frequency : {1, 3, 50}) {
    Net model(configuration);
    model.init();
    wrapperOf(model, 1).averagingFrequency(frequency).build().fit(data, 2);
    CHECK(stateBits(model) == stateBits(alone));
  }
}

}  // namespace

TEST_CASE("W workers on a graph of two inputs and two outputs equal one worker on the joined batches") {
  for (const int workers : {2, 3, 4}) {
    const auto data = unevenBatches(workers, 10, taskBatch);
    for (const auto& updater :
         {Updater(Sgd{.learningRate = 0.1}), Updater(Nesterovs{.learningRate = 0.03})}) {
      checkLikeOneWorker<ComputationGraph>(twoTasks(updater), workers, TrainingMode::Averaging, data);
      checkLikeOneWorker<ComputationGraph>(twoTasks(updater), workers, TrainingMode::SynchronousGradients,
                                           data);
    }
    // Adam divides by the gradient's size: an epsilon larger than the default keeps rounding small.
    checkLikeOneWorker<ComputationGraph>(twoTasks(Adam{.learningRate = 0.01, .epsilon = 1e-2}), workers,
                                         TrainingMode::SynchronousGradients, data);
  }
}

TEST_CASE("W workers on a network with dropout and clipping equal one worker on the joined batches") {
  for (const int workers : {2, 3}) {
    const auto data = unevenBatches(workers, 30, imageBatch);
    for (const auto& updater :
         {Updater(Sgd{.learningRate = 0.05}), Updater(Nesterovs{.learningRate = 0.02})}) {
      checkLikeOneWorker<MultiLayerNetwork>(convolving(updater), workers, TrainingMode::Averaging, data);
      auto clipped = convolving(updater);
      clipped.clipNorm = 0.5;
      checkLikeOneWorker<MultiLayerNetwork>(clipped, workers, TrainingMode::SynchronousGradients, data);
    }
  }
}

TEST_CASE("one worker trains a network as it trains itself, bit for bit, at any frequency") {
  const Schedule warmUp = WarmUpSchedule{.iterations = 5, .then = 0.01};
  checkOneWorkerAlone<MultiLayerNetwork>(convolving(Adam{.learningRate = warmUp}), imageBatch);
  checkOneWorkerAlone<ComputationGraph>(twoTasks(Adam{.learningRate = 0.01}), taskBatch);
}

TEST_CASE("a network has the same bits on every run, for one to four workers and for two threads a worker") {
  std::vector<Batch> batches;
  for (std::uint64_t b = 0; b < 13; ++b) batches.push_back(imageBatch(16, b));
  ListIterator data(batches);
  for (const int workers : {1, 2, 3, 4})
    for (const int threads : {1, 2}) {
      CAPTURE(workers);
      CAPTURE(threads);
      const auto trained = [&] {
        MultiLayerNetwork model(convolving(Nesterovs{.learningRate = 0.02}));
        model.init();
        wrapperOf(model, workers).threadsPerWorker(threads).averagingFrequency(3).build().fit(data, 2);
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
  std::vector<Batch> batches;
  for (std::uint64_t b = 0; b < 9; ++b) batches.push_back(taskBatch(3, b));
  ListIterator data(batches);
  auto configuration = twoTasks(Nesterovs{.learningRate = 0.05});
  ComputationGraph known(configuration);
  known.init();
  wrapperOf(known, 3).averagingFrequency(2).build().fit(data);
  for (auto& input : configuration.inputs) input.shape = {};
  ComputationGraph open(configuration);
  wrapperOf(open, 3).averagingFrequency(2).build().fit(data);
  CHECK(open.configuration().inputs[0].shape == kImage);
  CHECK(open.configuration().inputs[1].shape == Shape{5});
  CHECK(stateBits(open) == stateBits(known));
}

TEST_CASE("frozen layers of a graph stay frozen in every mode, with their statistics") {
  std::vector<Batch> batches;
  for (std::uint64_t b = 0; b < 8; ++b) batches.push_back(taskBatch(4, b));
  auto configuration = twoTasks(Nesterovs{.learningRate = 0.05});
  configuration.add("norm", Layer(BatchNorm{}).frozen(), {"both"});
  configuration.add("free", BatchNorm{}, {"norm"});
  for (auto& vertex : configuration.vertices) {
    if (vertex.name == "seen") vertex.layer = vertex.layer.frozen();
    if (vertex.name == "digit") vertex.layer = vertex.layer.learningRate(0);
    if (vertex.name == "digit" || vertex.name == "size") vertex.inputs = {"free"};
  }
  for (const auto mode :
       {TrainingMode::Averaging, TrainingMode::SynchronousGradients, TrainingMode::SharedGradients}) {
    ComputationGraph model(configuration);
    model.init();
    const auto before = model.clone();
    ListIterator data(batches);
    wrapperOf(model, 2, mode).build().fit(data, 2);
    const auto stays = [&](BlockKind kind, const std::string& name) {
      return std::ranges::equal(model.block(kind).segment(name).span<float>(),
                                before->block(kind).segment(name).span<float>());
    };
    for (const std::string name : {"seen.weight", "seen.bias", "digit.weight", "norm.gamma", "norm.beta"}) {
      CAPTURE(name);
      CHECK(stays(BlockKind::Parameters, name));
    }
    for (const std::string name : {"known.weight", "free.gamma", "size.weight"}) {
      CAPTURE(name);
      CHECK_FALSE(stays(BlockKind::Parameters, name));
    }
    CHECK(stays(BlockKind::Statistics, "norm.mean"));
    CHECK(stays(BlockKind::Statistics, "norm.variance"));
    CHECK_FALSE(stays(BlockKind::Statistics, "free.mean"));
  }
}

TEST_CASE("a layer's own learning rate is used by every worker") {
  // One step from the same start: the change is proportional to the learning rate.
  const std::vector<Batch> batches{taskBatch(4, 1), taskBatch(2, 2)};
  for (const auto mode : {TrainingMode::Averaging, TrainingMode::SynchronousGradients}) {
    const auto train = [&](double scale) {
      auto configuration = twoTasks(Sgd{.learningRate = 0.1});
      for (auto& vertex : configuration.vertices)
        if (vertex.name == "known") vertex.layer = vertex.layer.learningRate(scale);
      auto model = std::make_unique<ComputationGraph>(configuration);
      model->init();
      if (scale == 0) return model;
      ListIterator data(batches);
      wrapperOf(*model, 2, mode).build().fit(data);
      return model;
    };
    const auto start = train(0), whole = train(1), half = train(0.5);
    const auto at = [](ComputationGraph& model, const char* name, std::size_t i) {
      return static_cast<double>(model.block(BlockKind::Parameters).segment(name).span<float>()[i]);
    };
    for (std::size_t i = 0; i < 20; ++i) {
      const double change = at(*whole, "known.weight", i) - at(*start, "known.weight", i);
      CHECK(at(*half, "known.weight", i) - at(*start, "known.weight", i) ==
            doctest::Approx(change / 2).epsilon(1e-6));
      CHECK(at(*half, "seen.weight", i) == doctest::Approx(at(*whole, "seen.weight", i)).epsilon(1e-6));
      CHECK(std::abs(change) > 1e-5);
    }
  }
}
