// Gradient accumulation: n batches per step equal the joined batch, for a single model and for workers.

#include "muster/core/data/in_memory.h"
#include "muster/core/io/model_file.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/allocations.h"
#include "tests/support/list_iterator.h"
#include "tests/support/recording_listener.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/thrown.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;

namespace {

// Features, labels, rates, dropout factors and numbers of examples are small multiples of powers of 2, so
// there is no rounding and sums in any order have the same bits.
constexpr std::int64_t kExamples = 40, kInputs = 4, kOutputs = 2;

/// Small integers that depend only on the index.
Tensor integers(const Shape& shape, std::int64_t factor) {
  Tensor tensor = Tensor::empty(shape);
  for (std::int64_t i = 0; i < tensor.elements(); ++i)
    tensor.data<float>()[i] = static_cast<float>((factor * i + i / 3) % 5 - 2);
  return tensor;
}

InMemoryDataSetIterator examples(std::int64_t batch) {
  return InMemoryDataSetIterator(integers({kExamples, kInputs}, 7), integers({kExamples, kOutputs}, 3),
                                 batch);
}

MultiLayerConfiguration linear(std::int64_t accumulate) {
  return {.updater = Nesterovs{.learningRate = 0.25, .momentum = 0.5},
          .accumulate = accumulate,
          .inputShape = {kInputs},
          .layers = {Dropout{.rate = 0.5}, Output{.classes = kOutputs,
                                                  .loss = Loss::MeanSquaredError,
                                                  .activation = Activation::Identity}}};
}

/// A network whose weights are 0.
class Zeroed {
 public:
  explicit Zeroed(std::int64_t accumulate) : network_(linear(accumulate)) {
    network_.init();
    setZero(network_.block(BlockKind::Parameters).values, network_.context());
  }
  MultiLayerNetwork& operator*() { return network_; }
  MultiLayerNetwork* operator->() { return &network_; }

 private:
  MultiLayerNetwork network_;
};

}  // namespace

TEST_CASE("n batches per step equal the joined batches bit for bit, with dropout and a shorter last step") {
  // 40 examples: 4 batches of 4 per step give steps of 16, 16 and 8 examples; so do 8 batches of 2.
  Zeroed joined(1);
  auto whole = examples(16);
  joined->fit(whole);
  CHECK(joined->iteration() == 3);
  for (const std::int64_t count : {2, 4, 8, 16}) {
    CAPTURE(count);
    Zeroed network(count);
    auto data = examples(16 / count);
    network->fit(data);
    CHECK(network->iteration() == 3);
    CHECK(stateBits(*network) == stateBits(*joined));
    CHECK(network->score() == joined->score());
  }
  CHECK(std::ranges::any_of(joined->block(BlockKind::Parameters).values.span<float>(),
                            [](float w) { return w != 0; }));
}

TEST_CASE("a step takes the iterator's batches one after the other, also where their sizes differ") {
  // With batch normalisation a gradient depends on which examples are in a batch.
  const auto normalised = [](std::int64_t accumulate) -> MultiLayerConfiguration {
    return {
        .seed = 1,
        .updater = Sgd{.learningRate = 0.25},
        .accumulate = accumulate,
        .inputShape = {kInputs},
        .layers = {
            Dense{.units = 3}, BatchNorm{},
            Output{.classes = kOutputs, .loss = Loss::MeanSquaredError, .activation = Activation::Identity}}};
  };
  const Tensor features = integers({8, kInputs}, 7), labels = integers({8, kOutputs}, 3);
  const auto rows = [&](std::int64_t begin, std::int64_t end) {
    Batch batch;
    batch.features = {{"x", features.rows(begin, end)}};
    batch.labels = {{"y", labels.rows(begin, end)}};
    batch.stamp.firstExample = begin;
    return batch;
  };
  MultiLayerNetwork one(normalised(1));
  one.init();
  Tensor& gradients = one.block(BlockKind::Gradients).values;
  const auto gradientOf = [&](const Batch& batch) {
    CHECK(one.gradient(batch).wait().weight == static_cast<double>(batch.examples()));
    const auto values = gradients.span<float>();
    return std::vector<double>(values.begin(), values.end());
  };
  const auto first = gradientOf(rows(0, 3)), second = gradientOf(rows(3, 8));
  for (std::size_t i = 0; i < first.size(); ++i)
    gradients.data<float>()[i] = static_cast<float>((3 * first[i] + 5 * second[i]) / 8);
  one.update({});
  ListIterator data({rows(0, 3), rows(3, 8)});
  for (const int workers : {0, 1}) {  // 0: model.fit
    MultiLayerNetwork network(normalised(2));
    network.init();
    workers == 0 ? network.fit(data) : toyWrapper(network, 1).build().fit(data);
    const auto values = network.block(BlockKind::Parameters).values.span<float>(),
               expected = one.block(BlockKind::Parameters).values.span<float>();
    for (std::size_t i = 0; i < values.size(); ++i)
      CHECK(values[i] == doctest::Approx(expected[i]).epsilon(1e-6));
  }
}

TEST_CASE("a last step of fewer batches has whole batches, so batch normalisation can be trained") {
  // 10 batches of 4: steps of 32 and 8 examples, the second of two batches, not of eight slices of 1.
  MultiLayerNetwork network(
      {.accumulate = 8,
       .inputShape = {kInputs},
       .layers = {
           Dense{.units = 3}, BatchNorm{},
           Output{.classes = kOutputs, .loss = Loss::MeanSquaredError, .activation = Activation::Identity}}});
  auto data = examples(4);
  CHECK_NOTHROW(network.fit(data));
  CHECK(network.iteration() == 2);
}

TEST_CASE("workers whose steps have n batches equal one worker on all batches joined") {
  Zeroed joined(1);
  auto whole = examples(16);
  joined->fit(whole);
  for (const auto mode : {TrainingMode::Averaging, TrainingMode::SynchronousGradients})
    for (const int workers : {1, 2, 4}) {
      CAPTURE(workers);
      const std::int64_t count = 16 / (2 * workers);
      Zeroed network(count);
      auto data = examples(2);
      toyWrapper(*network, workers).trainingMode(mode).build().fit(data);
      CHECK(network->iteration() == 3);
      CHECK(stateBits(*network) == stateBits(*joined));
    }
}

TEST_CASE("a training with several batches per step is resumed within an epoch to the same bits") {
  TemporaryDirectory directory;
  const auto file = directory / "after-two-steps.safetensors";
  Zeroed network(4);
  auto data = examples(4);
  network->setListeners({mergedListener([&](const RecordedCall& call, Trainer& trainer) {
    if (call.event != "merge" || call.iteration != 2) return;
    ModelSnapshot(*network, trainer.trainingState()).write(file);
  })});
  network->fit(data);
  const auto resumed = MultiLayerNetwork::load(file);
  CHECK(resumed->configuration().accumulate == 4);
  CHECK(resumed->iteration() == 2);
  resumed->fit(data);
  CHECK(stateBits(*resumed) == stateBits(*network));
}

TEST_CASE("evaluating the training's own iterator is refused, whether its batches are joined or not") {
  for (const std::int64_t count : {1, 4}) {
    Zeroed network(count);
    auto data = examples(4);
    const DataSetIterator* seen = nullptr;
    network->setListeners(
        {mergedListener([&](const RecordedCall&, Trainer& trainer) { seen = trainer.trainingData(); })});
    network->fit(data);
    CHECK(seen == &data);
  }
}

TEST_CASE("steps of several batches allocate nothing once they are planned") {
  Zeroed network(4);
  Batch batch;
  auto data = examples(16);
  data.reset(0);
  REQUIRE(data.next(batch));
  network->step(batch);
  const long before = allocations();
  network->step(batch);
  CHECK(allocations() == before);
}

TEST_CASE("models and iterators that cannot accumulate are refused by name") {
  CHECK(thrown<InvalidArgument>([] { MultiLayerNetwork network(linear(0)); }) ==
        "training options: accumulate must be between 1 and 1048576 batches, got 0");
  auto configuration = linear(2);
  configuration.layers[0] = BatchNorm{.synchronised = true};
  MultiLayerNetwork network(configuration);
  network.init();
  auto data = examples(4);
  auto wrapper = toyWrapper(network, 2).build();
  CHECK(thrown<TrainingError>([&] {
          wrapper.fit(data);
        }).find("accumulate: a layer adds up numbers between workers") != std::string::npos);
}
