// Gradient accumulation: n batches per step equal the joined batch, for a single model and for workers.

#include "muster/core/data/in_memory.h"
#include "muster/core/io/model_file.h"
#include "muster/core/nn/multi_layer_network.h"
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

TEST_CASE("a number of batches out of range is refused by name") {
  CHECK_REFUSED(MultiLayerNetwork(linear(0)),
                "training options: accumulate must be between 1 and 1048576 batches, got 0");
}
