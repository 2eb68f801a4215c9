#include "muster/core/listeners/reduce_on_plateau.h"

#include "muster/core/data/in_memory.h"
#include "muster/core/io/model_file.h"
#include "muster/core/listeners/checkpoint_listener.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/parallel/strategies/asynchronous_outer.h"
#include "tests/parallel/builder_of.h"
#include "tests/support/fake_trainer.h"
#include "tests/support/on_merge.h"
#include "tests/support/small_examples.h"
#include "tests/support/test.h"
#include "tests/support/toy_wrapper.h"

namespace muster::test {
namespace {

/// The factor after each epoch that ends with these training scores.
std::vector<double> factorsAfter(PlateauOptions options, const std::vector<double>& scores) {
  EchoModel model;
  FakeTrainer trainer(model);
  options.monitor = Monitor::TrainingScore;
  options.sink = [](std::string_view) {};
  ReduceOnPlateau listener(options);
  listener.onFitStart({.trainer = trainer});
  std::vector<double> factors;
  for (std::size_t e = 0; e < scores.size(); ++e) {
    listener.onEpochEnd({trainer, static_cast<std::int64_t>(e), 0, scores[e], 0});
    factors.push_back(model.learningRateFactor());
    CHECK(listener.factor() == model.learningRateFactor());
  }
  listener.onFitEnd(trainer);
  CHECK(model.learningRateFactor() == 1);
  return factors;
}

/// By a value of each epoch, of which a smaller one is better; the last one for all later epochs.
std::shared_ptr<ReduceOnPlateau> plateauOf(std::vector<double> values, double factor, std::int64_t patience) {
  const auto measure = [values = std::move(values)](Trainer& of) {
    return values[std::min(static_cast<std::size_t>(of.model().epoch()), values.size()) - 1];
  };
  return std::make_shared<ReduceOnPlateau>(PlateauOptions{.monitor = Monitor::Own,
                                                          .mode = MonitorMode::Min,
                                                          .measure = measure,
                                                          .factor = factor,
                                                          .patience = patience,
                                                          .sink = [](std::string_view) {}});
}

Listeners listenersOf(const std::filesystem::path& directory) {
  return {std::make_shared<CheckpointListener>(CheckpointOptions{.directory = directory, .resumed = true}),
          plateauOf({1, 2, 2, 3, 3, 3, 1, 0.5, 1, 1}, 0.5, 2)};
}

void train(Model& model, int workers, std::int64_t epochs, const Listeners& listeners) {
  SmallExamples data(5);
  fitWith(model, workers, data, epochs, listeners, 2);
}

/// The iterations after which two workers were merged, in epochs of 24 iterations.
/// @param fits  epochs of each call.  @param lowers  whether the rate is halved after each epoch but the
/// first.
template <typename Rule>
std::vector<std::int64_t> mergesOf(Model& model, const Rule& rule, const std::vector<std::int64_t>& fits,
                                   bool lowers) {
  std::vector<std::int64_t> iterations;
  Listeners listeners{onMerge([&](const MergeEvent& event) { iterations.push_back(event.iteration); })};
  if (lowers) listeners.push_back(plateauOf({0}, 0.5, 1));
  auto data = ToyIterator::ofValues(std::vector<float>(48, 1));
  auto wrapper = builderOf(model, 2, rule).listeners(listeners).build();
  for (const std::int64_t epochs : fits) wrapper.fit(data, epochs);
  return iterations;
}

TEST_CASE("an R2 that is undefined, because all numbers to predict are equal, is refused") {
  MultiLayerNetwork model({.updater = Sgd{.learningRate = 0.1},
                           .inputShape = {1},
                           .layers = {Output{.units = 1, .loss = Loss::MeanSquaredError}}});
  model.init();
  InMemoryDataSetIterator data(Tensor::of({1, 2}, {2, 1}), Tensor::of({3, 3}, {2, 1}), 2);
  auto validation = data;
  const auto listener =
      std::make_shared<ReduceOnPlateau>(PlateauOptions{.validation = &validation, .monitor = Monitor::R2});
  CHECK_CONTAINS(
      thrown<Error>([&] { fitWith(model, 1, data, 1, {listener}); }),
      "reduce on plateau: the validation R2 is undefined, because all numbers to predict are equal; "
      "monitor the loss");
}

TEST_CASE("the learning rate is lowered after so many epochs without an improvement") {
  // Best 4; 5 and 4 are none better: two epochs; 3 improves; two more.
  CHECK(factorsAfter({.factor = 0.5, .patience = 2}, {4, 5, 4, 3, 3, 3, 3, 3}) ==
        std::vector<double>{1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.125});
  CHECK(factorsAfter({.factor = 0.5, .patience = 1, .minImprovement = 1}, {4, 3, 2.5, 1.9}) ==
        std::vector<double>{1, 0.5, 0.5, 0.25});
  CHECK(factorsAfter({.factor = 0.5, .patience = 1, .minFactor = 0.4}, {1, 1, 1, 1}) ==
        std::vector<double>{1, 0.5, 0.4, 0.4});
  CHECK(factorsAfter({.factor = 0.5, .patience = 2}, {kNan, kInfinity, 1}) ==
        std::vector<double>{1, 0.5, 0.5});
}

TEST_CASE("all workers take the lower learning rate at once") {
  // With SGD and learning rate 0.5 a step moves p halfway to 1: from 0 to 0.5. Then the rate is a tenth, and
  // a step moves it by a twentieth of what is left.
  for (const int workers : {0, 1, 3}) {
    CAPTURE(workers);
    ToyModel model;
    auto data = ToyIterator::ofValues(std::vector<float>(static_cast<std::size_t>(std::max(workers, 1)), 1));
    const auto plateau = plateauOf({1, 1, 0}, 0.1, 1);
    const auto parameters = [&](std::int64_t epochs) {
      fitWith(model, workers, data, epochs, {plateau});
      return static_cast<double>(model.parameters()[0]);
    };
    CHECK(parameters(2) == doctest::Approx(0.75));             // the plateau is after epoch 2
    CHECK(parameters(1) == doctest::Approx(1 - 0.25 * 0.95));  // a further fit goes on with it
    CHECK(model.learningRateFactor() == 1);
    CHECK(model.learningRate().at(0) == 0.5);
  }
}

TEST_CASE("a training with a plateau that is resumed ends with the same bits") {
  for (const int workers : {0, 2}) {
    CAPTURE(workers);
    const TemporaryDirectory whole, parts;
    const MultiLayerConfiguration layers{.seed = 4,
                                         .updater = Adam{.learningRate = 0.05},
                                         .inputShape = {6},
                                         .layers = {Dense{.units = 5}, Output{.classes = 4}}};
    MultiLayerNetwork once(layers), first(layers), second(layers), without(layers);
    for (auto* model : {&once, &first, &second, &without}) model->init();
    train(once, workers, 10, listenersOf(whole.path()));
    train(first, workers, 5, listenersOf(parts.path()));
    loadState(second, parts.path() / "checkpoint-epoch-0005.safetensors");
    train(second, workers, 5, listenersOf(parts.path()));
    CHECK(stateBits(second) == stateBits(once));
    train(without, workers, 10, {});
    CHECK(stateBits(without) != stateBits(once));
  }
}

TEST_CASE("a rule that plans by the learning rate follows it from a further fit's first round on") {
  // QSR: rounds of (1 / rate)^2 iterations: 4 at the rate 0.5, 16 at the rate 0.25 from epoch 3 on.
  std::vector<std::int64_t> each{4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 64, 72};
  for (const std::vector<std::int64_t>& fits : {std::vector<std::int64_t>{2, 1}, {1, 1, 1}}) {
    ToyModel model;
    CHECK(mergesOf(model, Averaging{.frequency = Period::qsr(2, {.alpha = 1})}, fits, true) == each);
  }
  // Within a fit the round after epoch 2 is planned before the rate is lowered.
  each = {4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 68, 72};
  ToyModel model;
  CHECK(mergesOf(model, Averaging{.frequency = Period::qsr(2, {.alpha = 1})}, {3}, true) == each);
}

TEST_CASE("workers that arrive one by one plan ahead, by the schedule without the plateau's factor") {
  const AsynchronousOuter rule{.frequency = Period::qsr(2, {.alpha = 1}), .speeds = {1, 0.5}};
  ToyModel lowered, constant, parts;
  const auto merges = mergesOf(constant, rule, {4}, false);
  CHECK(mergesOf(lowered, rule, {4}, true) == merges);
  CHECK(mergesOf(parts, rule, {2, 2}, true) == merges);
  CHECK(stateBits(lowered) != stateBits(constant));
}

TEST_CASE("a plateau's options out of range are refused") {
  const auto problem = [](PlateauOptions options) {
    options.monitor = Monitor::TrainingScore;
    return thrown<InvalidArgument>([&] { ReduceOnPlateau{options}; });
  };
  const std::string who = "reduce on plateau: ";
  CHECK(problem({.factor = 1}) == who + "factor must be between 0 and 1, got 1");
  CHECK(problem({.patience = 0}) == who + "patience must be at least 1 epoch, got 0");
  CHECK(problem({.minImprovement = -1}) == who + "minImprovement must be finite and not negative, got -1");
  CHECK(problem({.minFactor = 1}) == who + "minFactor must be from 0 to below 1, got 1");
  CHECK(problem({.mode = MonitorMode::Max}) ==
        who + "mode max contradicts the training score, of which a smaller one is better");
  CHECK_REFUSED(ReduceOnPlateau{{}}, who + "the validation loss needs validation data, got none");
}

}  // namespace

}  // namespace muster::test
