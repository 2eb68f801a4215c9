// Batch normalisation with several workers: merged running statistics, and `synchronised`, with which W
// workers compute the same as one worker on the joined batches.

#include "muster/core/device/peers.h"
#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/parallel/data_parallel/data_parallel.h"
#include "tests/parallel/uneven_sizes.h"
#include "tests/support/list_iterator.h"
#include "tests/support/recording_listener.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;

namespace {

/// A batch with one feature per example.
Batch batchOf(const std::vector<float>& values) {
  Batch batch;
  const auto n = static_cast<std::int64_t>(values.size());
  batch.features.push_back({"features", Tensor::of(values, {n, 1})});
  batch.labels.push_back({"labels", Tensor::zeros({n}, DType::Int64)});
  return batch;
}

Tensor statistic(Model& model, const char* name) {
  return model.block(BlockKind::Statistics).segment(name);
}

const Shape kExample{2, 6, 5};
constexpr std::int64_t kClasses = 3;
constexpr int kSteps = 12;

/// Example i does not depend on its batch; some examples have smaller weights.
Batch examples(std::int64_t first, std::int64_t n) {
  Batch batch;
  Tensor features = Tensor::empty(kExample.prepend(n)), labels = Tensor::empty({n}, DType::Int64),
         mask = Tensor::empty({n});
  const RandomStream random(17, "examples");
  const std::int64_t size = kExample.elements();
  for (std::int64_t i = 0; i < n; ++i) {
    const auto example = static_cast<std::uint64_t>(first + i);
    const auto label = static_cast<std::int64_t>(random.below(2 * example, kClasses));
    labels.data<std::int64_t>()[i] = label;
    mask.data<float>()[i] = random.uniform(2 * example + 1) < 0.3 ? 0.25f : 1.0f;
    for (std::int64_t j = 0; j < size; ++j)
      features.data<float>()[i * size + j] = static_cast<float>(
          random.normal(1000000 + example * static_cast<std::uint64_t>(size + j)) * (j % 3 + 1) +
          static_cast<double>(label * (j % 2)));
  }
  batch.features.push_back({"features", features});
  batch.labels.push_back({"labels", labels});
  batch.masks.push_back({"mask", mask});
  return batch;
}

ListIterator batchesOf(const std::vector<std::int64_t>& sizes) {
  std::vector<Batch> batches;
  std::int64_t first = 0;
  for (const auto n : sizes) {
    batches.push_back(examples(first, n));
    first += n;
  }
  return ListIterator(std::move(batches));
}

MultiLayerConfiguration network(const Updater& updater, bool synchronised = true) {
  return {.seed = 3,
          .updater = updater,
          .l2 = 1e-3,
          .inputShape = kExample,
          .layers = {Conv2d{.outChannels = 5, .kernel = {3, 3}, .bias = false},
                     BatchNorm{.activation = Activation::Tanh, .synchronised = synchronised, .name = "bn"},
                     Conv2d{.outChannels = 4, .kernel = {2, 2}}, BatchNorm{.synchronised = synchronised},
                     Dense{.units = 6},
                     BatchNorm{.activation = Activation::Sigmoid, .synchronised = synchronised},
                     Output{.classes = kClasses}}};
}

// In float32 every step rounds differently, by about 1e-7 of the parameters, accumulated over 24 steps.
// Without synchronisation the distance is a thousand times the tolerance (see below).
constexpr double kRounding = 1e-5;

/// |a - b| / |b|, Euclidean.
double distance(const Tensor& a, const Tensor& b) {
  double difference = 0, norm = 0;
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    difference += std::pow(a.data<float>()[i] - b.data<float>()[i], 2);
    norm += std::pow(b.data<float>()[i], 2);
  }
  return std::sqrt(difference / norm);
}

/// Trains so many workers in this mode, and one worker on the joined batches.
void checkLikeOne(TrainingMode mode, int workers, const Updater& updater) {
  INFO("workers ", workers, ", updater ", updater.type());
  MultiLayerNetwork many(network(updater)), one(network(updater));
  many.init();
  one.init();
  const auto sizes = test::unevenSizes(workers, kSteps);
  auto split = batchesOf(sizes), together = batchesOf(test::joined(sizes, workers));
  auto wrapper = toyWrapper(many, workers).trainingMode(mode).build();
  wrapper.fit(split);
  wrapper.fit(split);  // again, with the workers that had left
  one.fit(together, 2);
  REQUIRE(one.iteration() == 2 * kSteps);
  REQUIRE(many.iteration() == 2 * kSteps);
  for (const BlockKind kind : {BlockKind::Parameters, BlockKind::Statistics})
    CHECK(distance(many.block(kind).values, one.block(kind).values) < kRounding);
}

/// Passes its input on, and exchanges one value in the first batch and two in the second.
struct UnevenExchange {
  static constexpr std::string_view kType = "test-uneven-exchange";
  std::string name = {};

  class Program final : public ModuleProgram {
   public:
    explicit Program(Context& context) : context_(context) {}
    void forward(const Tensor& x, Tensor& y, const StepInfo& info) override {
      std::vector<double> values(static_cast<std::size_t>(info.stamp.sequence) + 1);
      context_.peers()->sum(values);
      copy(x, y, context_);
    }
    void backward(const Tensor&, const Tensor&, Tensor& gradY, Tensor& gradX, const StepInfo&) override {
      if (gradX.defined()) copy(gradY, gradX, context_);
    }

   private:
    Context& context_;
  };

  Shape outputShape(const Shape& input) const { return input; }
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding&, Context& context) const {
    return std::make_unique<Program>(context);
  }
  void fields(Fields& f) { f.field("name", name); }
  void validate() const {}
};

}  // namespace

TEST_CASE("a merge gives running statistics the moments of both workers, as worked out by hand") {
  // Worker 0: {1, 3} has mean 2, variance 1; worker 1: {0, 3, 6} has 3 and 6. Then {4, 8} with (6, 4) and
  // {1, 4, 7} with (4, 6).
  const std::vector<Batch> first{batchOf({1, 3}), batchOf({0, 3, 6})},
      both{first[0], first[1], batchOf({4, 8}), batchOf({1, 4, 7})};
  const struct {
    double momentum;
    std::int64_t frequency;
    const std::vector<Batch>& batches;
    double mean, variance;
  } rows[] = {// Momentum 1: the moments of {1, 3, 0, 3, 6}: 13/5, and 55/5 - 2.6^2.
              {1, 1, first, 2.6, 4.24},
              // Momentum 0.5, from 0 and 1: (1, 1) and (1.5, 3.5), weighing 0.4 and 0.6:
              // 0.4 + 0.9 = 1.3, and 0.4 (1 + 1) + 0.6 (3.5 + 2.25) - 1.69 = 2.56.
              {0.5, 1, first, 1.3, 2.56},
              // At frequency 2: (3.5, 2.5) and (2.75, 4.75):
              // 1.4 + 1.65 = 3.05, and 0.4 (2.5 + 12.25) + 0.6 (4.75 + 7.5625) - 9.3025 = 3.985.
              {0.5, 2, both, 3.05, 3.985},
              // At frequency 1 from (1.3, 2.56): (3.65, 3.28) and (2.65, 4.28):
              // 1.46 + 1.59 = 3.05, and 0.4 (3.28 + 13.3225) + 0.6 (4.28 + 7.0225) - 9.3025 = 4.12.
              {0.5, 1, both, 3.05, 4.12}};
  for (const auto& [momentum, frequency, batches, mean, variance] : rows) {
    MultiLayerNetwork model(
        {.updater = Sgd{.learningRate = 0.1},
         .inputShape = {1},
         .layers = {BatchNorm{.momentum = momentum, .name = "bn"}, Output{.classes = 2}}});
    model.init();
    ListIterator data(batches);
    toyWrapper(model, 2, frequency).build().fit(data);
    CHECK(statistic(model, "bn.mean").data<float>()[0] == doctest::Approx(mean));
    CHECK(statistic(model, "bn.variance").data<float>()[0] == doctest::Approx(variance));
  }
}

TEST_CASE("synchronised: one worker on the joined batches equals averaging every step with SGD") {
  for (const int workers : {2, 3, 4})
    checkLikeOne(TrainingMode::Averaging, workers, Sgd{.learningRate = 0.1});
}

TEST_CASE("synchronised: one worker on the joined batches equals synchronous gradients with any updater") {
  for (const Updater& updater : {Updater(Sgd{.learningRate = 0.1}), Updater(Nesterovs{.learningRate = 0.05}),
                                 Updater(Adam{.learningRate = 0.01, .epsilon = 1e-3})})
    for (const int workers : {2, 3, 4}) checkLikeOne(TrainingMode::SynchronousGradients, workers, updater);
}

TEST_CASE("without synchronised statistics two workers differ from one on the joined batches") {
  // Batches of at least two, because a single example has no variance.
  MultiLayerNetwork many(network(Sgd{.learningRate = 0.1}, false)),
      one(network(Sgd{.learningRate = 0.1}, false));
  many.init();
  one.init();
  auto split = batchesOf({2, 4, 3, 5, 2, 2}), together = batchesOf({6, 8, 4});
  toyWrapper(many, 2).build().fit(split);
  one.fit(together);
  CHECK(distance(many.block(BlockKind::Parameters).values, one.block(BlockKind::Parameters).values) >
        1000 * kRounding);
}

TEST_CASE("synchronised: a graph whose first output is masked equals one worker on the joined batches") {
  const auto graph = [] {
    ComputationGraphConfiguration made{
        .seed = 3, .updater = Sgd{.learningRate = 0.1}, .inputs = {{.name = "image", .shape = kExample}}};
    const auto conv = made.add("conv", Conv2d{.outChannels = 4, .kernel = {3, 3}, .bias = false}, {"image"});
    const auto norm =
        made.add("norm", BatchNorm{.activation = Activation::Tanh, .synchronised = true}, {conv});
    made.addOutput(made.add("masked", Output{.classes = kClasses}, {norm}));
    made.addOutput(made.add("seen", Output{.classes = kClasses}, {norm}));
    return made;
  };
  const auto batches = [](const std::vector<std::int64_t>& sizes) {
    std::vector<Batch> all;
    std::int64_t first = 0;
    for (const auto n : sizes) {
      Batch batch = examples(first, n);
      const Tensor labels = batch.labels.front().value;
      batch.labels = {{"masked", labels}, {"seen", labels}};
      batch.masks.front().name = "seen";
      batch.masks.push_back({"masked", Tensor::zeros({n})});
      all.push_back(batch);
      first += n;
    }
    return ListIterator(std::move(all));
  };
  ComputationGraph many(graph()), one(graph());
  many.init();
  one.init();
  const auto start = many.clone();
  auto split = batches({2, 4, 3, 5, 2, 2}), together = batches({6, 8, 4});
  toyWrapper(many, 2).build().fit(split);
  one.fit(together);
  const auto weights = [](Model& model) { return model.block(BlockKind::Parameters).segment("conv.weight"); };
  CHECK(distance(weights(many), weights(one)) < kRounding);
  CHECK(distance(weights(many), weights(*start)) > 100 * kRounding);
}

TEST_CASE("workers that bring different numbers of values to a sum get an error that says so") {
  MultiLayerNetwork model({.inputShape = {3}, .layers = {UnevenExchange{}, Output{.classes = 2}}});
  model.init();
  Batch batch;
  batch.features.push_back({"features", Tensor::zeros({2, 3})});
  batch.labels.push_back({"labels", Tensor::zeros({2}, DType::Int64)});
  ListIterator data({batch, batch});
  auto wrapper = toyWrapper(model, 2).build();
  std::string problem;
  try {
    wrapper.fit(data);
  } catch (const TrainingError& error) {
    problem = error.what();
    CHECK(problem == fmt::format("worker {0} on cpu failed in a sum over the workers in batch {1} of epoch "
                                 "1: workers of one step must sum equally many values, not 1 and 2 values",
                                 error.worker(), error.worker() + 1));
  }
  CHECK_FALSE(problem.empty());
}

TEST_CASE("synchronised: every run has the same bits, and one worker equals the model alone") {
  const auto bits = [](int workers, std::int64_t frequency) {
    MultiLayerNetwork model(network(Adam{.learningRate = 0.01}));
    model.init();
    std::vector<std::int64_t> sizes(23, 4);
    auto data = batchesOf(sizes);
    toyWrapper(model, workers, frequency).prefetchBuffer(frequency == 1 ? 0 : 16).build().fit(data, 3);
    return stateBits(model);
  };
  for (const std::int64_t frequency : {1, 3}) {
    CHECK(bits(3, frequency) == bits(3, frequency));
    MultiLayerNetwork alone(network(Adam{.learningRate = 0.01}));
    alone.init();
    auto data = batchesOf(std::vector<std::int64_t>(23, 4));
    alone.fit(data, 3);
    CHECK(bits(1, frequency) == stateBits(alone));
  }
}

TEST_CASE("a worker that fails wakes those that wait for it, and the wrapper can be used again") {
  for (const std::size_t bad : {0, 1, 4}) {
    CAPTURE(bad);
    MultiLayerNetwork model(network(Sgd{.learningRate = 0.1}));
    model.init();
    std::vector<Batch> batches;
    for (int b = 0; b < 9; ++b) batches.push_back(examples(4 * b, 4));
    auto good = ListIterator(batches);
    // The loss rejects the label, while the other two workers wait for this worker's sums of the backward
    // pass.
    batches[bad].labels[0].value = cloneTensor(batches[bad].labels[0].value);
    batches[bad].labels[0].value.data<std::int64_t>()[2] = kClasses;
    ListIterator broken(batches);
    auto wrapper = toyWrapper(model, 3).build();
    try {
      wrapper.fit(broken);
      FAIL("nothing failed");
    } catch (const TrainingError& error) {
      CHECK(error.worker() == static_cast<int>(bad % 3));
    }
    wrapper.fit(good);
    CHECK(model.epoch() == 1);
  }
}

TEST_CASE("a synchronised training can evaluate in its middle, and stop with workers inside a step") {
  MultiLayerNetwork model(network(Sgd{.learningRate = 0.01}));
  model.init();
  auto data = batchesOf(std::vector<std::int64_t>(40, 3)), test = batchesOf({3, 3, 1});
  for (const std::int64_t at : {0, 1, 7, 30}) {
    std::int64_t evaluated = 0;
    const auto evaluating = mergedListener([&](const RecordedCall& call, Trainer& trainer) {
      if (call.event == "merge") evaluated = trainer.evaluate(test).examples();
    });
    const auto stopping = workerListener([&](const RecordedCall& call, Trainer& trainer) {
      if (call.event == "iteration" && call.iteration % 10 == at % 10) trainer.stopFit();
    });
    toyWrapper(model, 3, 4).listeners({stopping, evaluating}).build().fit(data, 3);
    CHECK(evaluated == 7);
  }
}

TEST_CASE("DataParallel with a synchronised layer equals the model alone") {
  for (const std::size_t replicas : {1, 2, 3}) {
    CAPTURE(replicas);
    MultiLayerNetwork alone(network(Sgd{})), shared(network(Sgd{}));
    alone.init();
    shared.init();
    DataParallel parallel(shared, std::vector<Device>(replicas, Device::cpu()), 0, {.pinThreads = false});
    const Tensor input = examples(0, 8).features[0].value;
    Tensor output, gradInput;
    alone.forward(input, output);
    const Tensor got = parallel.forward(input);
    CHECK(distance(got, output) < 1e-6);
    Tensor gradOutput = cloneTensor(output);  // any values
    alone.backward(gradOutput, &gradInput);
    parallel.zeroGradients();
    CHECK(distance(parallel.backward(gradOutput), gradInput) < kRounding);
    CHECK(distance(shared.block(BlockKind::Gradients).values, alone.block(BlockKind::Gradients).values) <
          kRounding);
    CHECK(distance(statistic(shared, "bn.mean"), statistic(alone, "bn.mean")) < 1e-6);
    const Tensor one = examples(0, 1).features[0].value;
    CHECK_THROWS_AS(parallel.forward(one), TrainingError);  // one value per channel in the last layer
    CHECK_NOTHROW(parallel.forward(input));
  }
}
