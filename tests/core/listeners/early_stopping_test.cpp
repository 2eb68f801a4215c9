#include "muster/core/listeners/early_stopping.h"

#include "muster/core/data/in_memory.h"
#include "muster/core/eval/any_evaluation.h"
#include "muster/core/listeners/checkpoint_listener.h"
#include "muster/core/listeners/reduce_on_plateau.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/allocations.h"
#include "tests/support/batch_of.h"
#include "tests/support/fake_trainer.h"
#include "tests/support/list_iterator.h"
#include "tests/support/on_merge.h"
#include "tests/support/recording_listener.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;

namespace {

/// Monitors the training score.
EarlyStoppingOptions byScore(EarlyStoppingOptions options) {
  options.monitor = Monitor::TrainingScore;
  options.mode = MonitorMode::Min;
  return options;
}

/// Trains on the value 1; 0 workers: with Model::fit. One batch per worker and epoch, so SGD moves halfway to
/// 1 in each epoch: p = 1 - 2^-e after e epochs.
void train(Model& model, int workers, std::int64_t epochs, const Listeners& listeners) {
  auto data = ToyIterator::ofValues(std::vector<float>(static_cast<std::size_t>(std::max(workers, 1)), 1));
  fitWith(model, workers, data, epochs, listeners);
}

/// A data set for a model that predicts class 1 with probability x + p.
ListIterator validation(const std::vector<float>& x, const std::vector<float>& labels) {
  const Shape shape{static_cast<std::int64_t>(x.size()), 1};
  return ListIterator({batchOf(Tensor::of(x, shape), Tensor::of(labels, shape))});
}

/// Has momentum and statistics, so that more than parameters must be restored. Epoch e has the e-th score.
ToyModel scored(std::vector<double> scores) {
  auto control = std::make_shared<ToyControl>();
  control->reportedScore = [scores = std::move(scores)](const Batch& batch, double) {
    return scores.at(static_cast<std::size_t>(batch.stamp.epoch));
  };
  return ToyModel({.training = halfNesterovs(), .statistics = true}, control);
}

/// Ends epochs with these training scores, from epoch 0 on.
void endEpochs(EarlyStopping& listener, Trainer& trainer, const std::vector<double>& scores) {
  listener.onFitStart({.trainer = trainer});
  for (std::size_t e = 0; e < scores.size() && listener.reason().empty(); ++e) {
    const auto epoch = static_cast<std::int64_t>(e);
    trainer.model().setCounters(10 * (epoch + 1), epoch + 1);
    listener.onEpochEnd({trainer, epoch, 10 * (epoch + 1), scores[e], 0});
  }
}

}  // namespace

TEST_CASE(
    "early stopping stops when the accuracy no longer improves, and restores the best state on request") {
  // Class 1 is predicted above 0.5: for the three examples where p is above 0.25, 0.7 and 0.8. So after epoch
  // 1 (p = 0.5) the first and third are right, after epoch 2 (0.75) all, from epoch 3 (0.875) on two again.
  for (const int workers : {0, 1, 2})
    for (const bool restore : {false, true}) {
      CAPTURE(workers);
      CAPTURE(restore);
      auto data = validation({0.25, -0.2, -0.3}, {1, 1, 0});
      std::vector<std::string> lines;
      auto listener = std::make_shared<EarlyStopping>(
          EarlyStoppingOptions{.validation = &data,
                               .mode = MonitorMode::Max,
                               .patience = 2,
                               .restoreBest = restore,
                               .sink = [&](std::string_view line) { lines.emplace_back(line); }});
      ToyModel model;
      train(model, workers, 20, {listener});
      const std::string reason =
          "the validation accuracy has not improved for 2 epochs; the best was 1 after epoch 2";
      CHECK(listener->reason() == reason);
      REQUIRE(listener->best());
      CHECK(listener->best()->epoch == 2);
      CHECK(listener->best()->value == 1);
      CHECK(data.epochs.size() == 4);
      CHECK(model.parameters()[0] == (restore ? 0.75f : 0.9375f));
      CHECK(model.epoch() == (restore ? 2 : 4));
      CHECK(model.iteration() == (restore ? 2 : 4));
      std::vector<std::string> expected = {"early stopping after epoch 4: " + reason};
      if (restore)
        expected.emplace_back("early stopping: the model has its best state again, the one after epoch 2");
      CHECK(lines == expected);
    }
}

TEST_CASE("the F1 keeps a model that finds a rare class, the accuracy one that predicts the frequent class") {
  // After epoch 1 (p = 0.5) five of the eight examples of class 1 are predicted as such, and no other; the F1
  // of class 1 is 10 / 13, and of class 0 it is 4 / 7. From epoch 2 on all are predicted as class 1.
  for (const int workers : {0, 2}) {
    CAPTURE(workers);
    const auto best = [&](Monitor monitor) {
      auto data = validation({0.25, 0.25, 0.25, 0.25, 0.25, -0.1f, -0.1f, -0.1f, -0.1f, -0.1f},
                             {1, 1, 1, 1, 1, 1, 1, 1, 0, 0});
      EarlyStoppingOptions options{.validation = &data, .monitor = monitor, .patience = 2};
      options.sink = [](std::string_view) {};
      auto listener = std::make_shared<EarlyStopping>(options);
      ToyModel model;
      train(model, workers, 20, {listener});
      REQUIRE(listener->best());
      return std::pair(listener->best()->epoch, listener->best()->value);
    };
    const auto [epoch, f1] = best(Monitor::F1);
    CHECK(epoch == 1);
    CHECK(f1 == doctest::Approx((10.0 / 13 + 4.0 / 7) / 2));
    CHECK(best(Monitor::Accuracy) == std::pair(std::int64_t{2}, 0.8));
  }
}

TEST_CASE("early stopping stops when the loss no longer improves") {
  // -log p for the first example, -log(1.5 - p) for the second: their means are 0.347, 0.288, 0.302, ...
  for (const int workers : {0, 2}) {
    CAPTURE(workers);
    auto data = validation({0, -0.5}, {1, 0});
    auto listener = std::make_shared<EarlyStopping>(EarlyStoppingOptions{.validation = &data,
                                                                         .monitor = Monitor::Loss,
                                                                         .mode = MonitorMode::Min,
                                                                         .patience = 1,
                                                                         .restoreBest = true});
    ToyModel model;
    train(model, workers, 20, {listener});
    CHECK(model.parameters()[0] == 0.75f);
    CHECK(listener->best()->epoch == 2);
    CHECK(listener->best()->value == doctest::Approx(-std::log(0.75)).epsilon(1e-9));
    CHECK(data.epochs.size() == 3);
  }
}

TEST_CASE("the whole state of the best epoch is restored, and training continues from there") {
  for (const int workers : {0, 1, 2}) {
    CAPTURE(workers);
    auto listener = std::make_shared<EarlyStopping>(byScore({.patience = 3, .restoreBest = true}));
    auto model = scored({5, 3, 4, 4, 4, 4}), reference = scored({5, 3, 4});
    train(model, workers, 6, {listener});
    CHECK(model.control().steps().size() == static_cast<std::size_t>(5 * std::max(workers, 1)));
    train(reference, workers, 2, {});
    CHECK(model.allBits() == reference.allBits());
    CHECK(model.score() == 3);
    train(model, workers, 1, {listener});
    train(reference, workers, 1, {});
    CHECK(model.allBits() == reference.allBits());
    CHECK(listener->best()->epoch == 3);  // of this fit alone
    CHECK(listener->reason().empty());
  }
}

TEST_CASE("a wrapper continues from the restored best state in its next fit()") {
  auto listener = std::make_shared<EarlyStopping>(byScore({.patience = 1, .restoreBest = true}));
  for (const bool average : {true, false}) {
    CAPTURE(average);
    auto model = scored({5, 3, 4, 4}), reference = scored({5, 3, 4});
    auto data = ToyIterator::ofValues({1, 1});
    auto wrapper = toyWrapper(model, 2).averageUpdaters(average).listeners({listener}).build();
    auto other = toyWrapper(reference, 2).averageUpdaters(average).build();
    wrapper.fit(data, 4);
    other.fit(data, 2);
    CHECK(model.allBits() == reference.allBits());
    wrapper.fit(data);
    other.fit(data);
    CHECK(model.allBits() == reference.allBits());
  }
}

TEST_CASE("the best state is restored when all epochs are done, and after a failure") {
  for (const int workers : {0, 2})
    for (const bool failing : {false, true}) {
      CAPTURE(workers);
      CAPTURE(failing);
      auto listener = std::make_shared<EarlyStopping>(byScore({.restoreBest = true}));
      const auto failure = onMerge([&](const MergeEvent& event) {
        if (failing && event.epoch == 2) throw std::runtime_error("full");
      });
      auto model = scored({3, 4, 4}), reference = scored({3});
      const auto problem = thrown<std::exception>([&] { train(model, workers, 3, {listener, failure}); });
      CHECK((problem.find("full") != std::string::npos) == failing);
      train(reference, workers, 1, {});
      CHECK(model.allBits() == reference.allBits());
      CHECK(listener->reason().empty());
    }
}

TEST_CASE("the state of an earlier fit() is never restored") {
  auto listener = std::make_shared<EarlyStopping>(byScore({.restoreBest = true}));
  ToyModel first, second;
  train(first, 0, 2, {listener});
  first.setParameters({7});
  auto failure =
      mergedListener([](const RecordedCall&, Trainer&) { throw std::runtime_error("at the start"); });
  CHECK_THROWS(train(first, 0, 1, {failure, listener}));  // `listener` is only notified of the end
  train(second, 0, 1, {listener});
  CHECK(first.parameters()[0] == 7);
  CHECK(second.parameters()[0] == 0.5);
}

TEST_CASE("patience counts epochs since an improvement above minImprovement; any improvement is the best") {
  EchoModel model;
  FakeTrainer trainer(model);
  EarlyStopping listener(byScore({.patience = 3, .minImprovement = 0.5, .restoreBest = true}));
  // 3.75 to 3.25 is 0.75 below 4, and so an improvement; 2.75 is not more than 0.5 below 3.25.
  endEpochs(listener, trainer, {4, 3.75, 3.25, 2.75, 3, 3, 0});
  CHECK(listener.reason() ==
        "the training score has not improved by more than 0.5 for 3 epochs; the best was 2.75 after epoch 4");
  CHECK(model.epoch() == 6);
  listener.onFitEnd(trainer);
  CHECK(model.epoch() == 4);
  CHECK(model.iteration() == 40);
}

TEST_CASE("only every N-th epoch is evaluated") {
  EchoModel model;
  FakeTrainer trainer(model);
  EarlyStopping listener(byScore({.everyEpochs = 2, .patience = 3}));
  endEpochs(listener, trainer, {0, 5, 0, 5, 0, 5, 0});  // after epoch 4 only two have passed
  CHECK(model.epoch() == 6);
  CHECK(listener.reason() ==
        "the training score has not improved for 4 epochs; the best was 5 after epoch 2");
}

TEST_CASE("the best state includes the strategy's state, and only its first copy allocates") {
  EchoModel model;
  model.strategyState().push_back({"momentum", Tensor::of({1, 2}, {2})});
  FakeTrainer trainer(model);
  EarlyStopping listener(byScore({.restoreBest = true}));
  endEpochs(listener, trainer, {5});
  model.strategyState()[0].values.data<float>()[1] = 3;
  CHECK(allocationsIn([&] { listener.onEpochEnd({trainer, 1, 0, 4, 0}); }) == 0);
  model.strategyState()[0].values.data<float>()[1] = 4;
  listener.onEpochEnd({trainer, 2, 0, 4, 0});
  listener.onFitEnd(trainer);
  REQUIRE(model.strategyState().size() == 1);
  CHECK(model.strategyState()[0].name == "momentum");
  CHECK(model.strategyState()[0].values.data<float>()[1] == 3);
}

TEST_CASE("a NaN value ends the training with its reason and the best state") {
  auto data = validation({2}, {1});  // a probability of 2.5
  auto listener = std::make_shared<EarlyStopping>(
      EarlyStoppingOptions{.validation = &data, .monitor = Monitor::Loss, .mode = MonitorMode::Min});
  ToyModel model;
  train(model, 0, 3, {listener});
  CHECK(model.epoch() == 1);
  CHECK(listener->stopped() == StopReason::NotANumber);
  CHECK(listener->reason() ==
        "the validation loss is nan, perhaps because predictions are not probabilities");
  CHECK_FALSE(listener->best());

  EchoModel echo;
  FakeTrainer trainer(echo);
  EarlyStopping other(byScore({.restoreBest = true}));
  endEpochs(other, trainer, {3, kInfinity, 2});
  CHECK(other.reason() == "the training score is inf; the best was 3 after epoch 1");
  other.onFitEnd(trainer);
  CHECK(echo.epoch() == 1);
}

TEST_CASE("the mode of a number of one's own says whether less or more is better, and is never guessed") {
  for (const auto mode : {MonitorMode::Min, MonitorMode::Max}) {
    EchoModel model;
    FakeTrainer trainer(model);
    std::vector<double> values{2, 1, 3, 2};
    EarlyStopping listener({.monitor = Monitor::Own,
                            .mode = mode,
                            .measure =
                                [&](Trainer& of) {
                                  CHECK(&of == &trainer);
                                  return values.at(static_cast<std::size_t>(of.model().epoch() - 1));
                                },
                            .patience = 2});
    endEpochs(listener, trainer, {0, 0, 0, 0});
    REQUIRE(listener.best());
    CHECK(listener.best()->epoch == (mode == MonitorMode::Min ? 2 : 3));
    CHECK(listener.best()->value == (mode == MonitorMode::Min ? 1 : 3));
    CHECK(listener.stopped() == (mode == MonitorMode::Min ? StopReason::NoImprovement : StopReason::None));
  }
}

TEST_CASE("regressions and labels stop early by their own loss, R2, AUC and F1") {
  const Output squares{.classes = 1, .loss = Loss::MeanSquaredError, .activation = Activation::Identity};
  const Output sigmoids{.classes = 2, .loss = Loss::BinaryCrossEntropy, .activation = Activation::Sigmoid};
  const Tensor features = Tensor::of({0, 1, 2, 3, 4, 5}, {6, 1});
  const Tensor numbers = Tensor::of({1, 1.5f, 4, 2, 5, 6}, {6, 1});
  const Tensor labels = Tensor::of({0, 1, 0, 0, 1, 1, 0, 1, 1, 1, 1, 0}, {6, 2});
  struct Case {
    const Output& output;
    const Tensor& wanted;
    Monitor monitor;
  };
  for (const auto& [output, wanted, monitor] :
       {Case{squares, numbers, Monitor::Loss}, Case{squares, numbers, Monitor::R2},
        Case{sigmoids, labels, Monitor::Loss}, Case{sigmoids, labels, Monitor::Auc},
        Case{sigmoids, labels, Monitor::Accuracy}, Case{sigmoids, labels, Monitor::F1}})
    for (const int workers : {0, 2}) {
      CAPTURE(nameOf(monitor));
      CAPTURE(workers);
      InMemoryDataSetIterator data(features, wanted, 2), held(features, wanted, 3);
      MultiLayerNetwork network({.seed = 1,
                                 .updater = Sgd{.learningRate = 0.05},
                                 .l2 = 0.5,  // not in the loss
                                 .inputShape = {1},
                                 .layers = {output}});
      network.init();
      const auto listener = std::make_shared<EarlyStopping>(EarlyStoppingOptions{
          .validation = &held, .monitor = monitor, .restoreBest = true, .sink = [](std::string_view) {}});
      fitWith(network, workers, data, 4, {listener});
      REQUIRE(listener->best());
      const AnyEvaluation e = network.evaluateTask(held);  // of the best state
      const double expected = monitor == Monitor::Loss  ? e.loss()
                              : monitor == Monitor::R2  ? e.regression().r2()
                              : monitor == Monitor::Auc ? e.labels().auc()
                              : monitor == Monitor::F1  ? e.labels().f1()
                                                        : e.accuracy();
      CHECK(listener->best()->value == expected);
      if (monitor == Monitor::Loss) {
        const double score = static_cast<Model&>(network).score(batchOf(features, wanted));
        CHECK(score == doctest::Approx(expected).epsilon(1e-6));
      }
    }
}

TEST_CASE(
    "the accuracy or F1 of a regression is refused before the training, but not of classes as one-hot rows") {
  const Output squares{.classes = 2, .loss = Loss::MeanSquaredError, .activation = Activation::Identity};
  const Tensor features = Tensor::of({0, 1, 2, 3}, {4, 1});
  const Tensor numbers = Tensor::of({1, 0, 0, 1, 0.5f, 0, 0, 1}, {4, 2});
  const Tensor classes = Tensor::of({1, 0, 0, 1, 1, 0, 0, 1}, {4, 2});
  const test::TemporaryDirectory directory;
  const auto failure = [&](const Tensor& labels, const auto& listenerOf, int workers) -> std::string {
    InMemoryDataSetIterator data(features, labels, 2), held(features, labels, 4);
    MultiLayerNetwork network({.inputShape = {1}, .layers = {squares}});
    network.init();
    try {
      fitWith(network, workers, data, 2, {listenerOf(held)});
      CHECK(network.epoch() == 2);
      return "";
    } catch (const std::exception& error) {
      CHECK(network.iteration() == 0);
      return error.what();
    }
  };
  const auto stopping = [](DataSetIterator& held) -> std::shared_ptr<Listener> {
    return std::make_shared<EarlyStopping>(EarlyStoppingOptions{.validation = &held});
  };
  const auto byF1 = [](DataSetIterator& held) -> std::shared_ptr<Listener> {
    return std::make_shared<EarlyStopping>(
        EarlyStoppingOptions{.validation = &held, .monitor = Monitor::F1, .sink = [](std::string_view) {}});
  };
  const auto plateau = [](DataSetIterator& held) -> std::shared_ptr<Listener> {
    return std::make_shared<ReduceOnPlateau>(
        PlateauOptions{.validation = &held, .monitor = Monitor::Accuracy});
  };
  const auto checkpoints = [&](DataSetIterator& held) -> std::shared_ptr<Listener> {
    return std::make_shared<CheckpointListener>(
        CheckpointOptions{.directory = directory.path(), .best = Monitored{.validation = &held}});
  };
  const std::string why = "a regression has no accuracy; monitor its loss or R2";
  CHECK(failure(numbers, stopping, 0) == "early stopping: " + why);
  CHECK(failure(numbers, plateau, 0) == "reduce on plateau: " + why);
  CHECK(failure(numbers, checkpoints, 0) == "checkpoint listener: " + why);
  CHECK(failure(numbers, stopping, 2) == "a listener failed at the start: early stopping: " + why);
  for (const int workers : {0, 2}) CHECK(failure(classes, stopping, workers).empty());
  CHECK(failure(classes, plateau, 0).empty());
  CHECK(failure(numbers, byF1, 0) == "early stopping: a regression has no F1; monitor its loss or R2");
  CHECK(failure(classes, byF1, 0).empty());
}

TEST_CASE("the time limit ends a training at a merge, by a clock of the test") {
  using std::chrono::seconds;
  for (const int workers : {0, 2}) {
    CAPTURE(workers);
    std::chrono::steady_clock::time_point now{};
    const auto clock = onMerge([&](const MergeEvent&) { now += seconds(2); });
    auto listener = std::make_shared<EarlyStopping>(
        byScore({.patience = 0, .maxTime = seconds(5), .now = [&] { return now; }}));
    ToyModel model;
    train(model, workers, 20, {clock, listener});
    CHECK(model.iteration() == 3);  // one merge an epoch: 2, 4 and 6 s
    CHECK(listener->stopped() == StopReason::Time);
    CHECK(listener->reason().starts_with("the training has reached its time limit of 5 s; the best was"));
    train(model, workers, 1, {clock, listener});  // its time begins anew
    CHECK(listener->stopped() == StopReason::None);
  }
}

TEST_CASE("the best model's file is whole at every moment, and can be trained on") {
  test::TemporaryDirectory directory;
  const auto file = directory / "best.safetensors";
  MultiLayerNetwork network(
      {.seed = 1, .updater = Sgd{.learningRate = 0.1}, .inputShape = {2}, .layers = {Output{.classes = 2}}});
  network.init();
  FakeTrainer trainer(network);
  EarlyStopping listener(byScore({.patience = 3, .bestFile = file, .notes = {{"by", "a test"}}}));
  endEpochs(listener, trainer, {4, 2, 3, 3, 3});
  listener.onFitEnd(trainer);  // waits for the file
  CHECK(Network::load(file)->epoch() == 2);
  CHECK(readModelNotes(file).at("by") == "a test");
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);  // it cannot be replaced
  CHECK_THROWS_AS(listener.onFitStart({.trainer = trainer}), FileError);
  EchoModel echo;
  FakeTrainer other(echo);
  CHECK_REFUSED(listener.onFitStart({.trainer = other}),
                "early stopping: bestFile needs a model that is a Network");
}

TEST_CASE("invalid options of early stopping are refused by name") {
  auto data = validation({0}, {1});
  constexpr auto kMin = MonitorMode::Min, kMax = MonitorMode::Max;
  const auto problem = [](const EarlyStoppingOptions& options) {
    return thrown<InvalidArgument>([&] { EarlyStopping listener(options); });
  };
  CHECK(problem({.validation = &data, .mode = kMax, .everyEpochs = 0}) ==
        "early stopping: everyEpochs must be at least 1, got 0");
  CHECK(problem({.validation = &data, .mode = kMax, .patience = -1}) ==
        "early stopping: patience cannot be negative, got -1");
  CHECK(problem({.validation = &data, .mode = kMax, .minImprovement = -0.5}) ==
        "early stopping: minImprovement must be finite and not negative, got -0.5");
  CHECK(problem({.validation = &data, .mode = kMax, .minImprovement = kInfinity}) ==
        "early stopping: minImprovement must be finite and not negative, got inf");
  CHECK(problem({.validation = &data, .mode = kMax, .maxTime = std::chrono::nanoseconds(-1)}) ==
        "early stopping: maxTime cannot be negative, got -1 ns");
  CHECK(problem({.validation = &data, .mode = kMax, .patience = 0}) ==
        "early stopping: patience and maxTime are both 0, and neither restoreBest nor bestFile keeps the "
        "best state, so it would only stop at a NaN");
  CHECK(problem({.monitor = Monitor::Own, .measure = [](Trainer&) { return 0.0; }}) ==
        "early stopping: mode must be given, Min or Max: whether a smaller or a larger monitored value is "
        "better");
  CHECK_NOTHROW(EarlyStopping({.validation = &data, .patience = 0, .restoreBest = true}));
  CHECK_NOTHROW(EarlyStopping({.validation = &data}));  // a larger accuracy is better
  CHECK_NOTHROW(EarlyStopping({.validation = &data, .monitor = Monitor::Loss}));
  CHECK(problem({.validation = &data, .monitor = Monitor::R2, .mode = kMin}) ==
        "early stopping: mode min contradicts the validation R2, of which a larger one is better");
  CHECK(problem({.monitor = Monitor::Auc}) ==
        "early stopping: the validation AUC needs validation data, got none");
  CHECK(problem({.validation = &data, .mode = kMin}) ==
        "early stopping: mode min contradicts the validation accuracy, of which a larger one is better");
  CHECK(problem({.validation = &data, .monitor = Monitor::Loss, .mode = kMax}) ==
        "early stopping: mode max contradicts the validation loss, of which a smaller one is better");
  CHECK(problem({.mode = kMax}) == "early stopping: the validation accuracy needs validation data, got none");
  CHECK(problem({.monitor = Monitor::Loss, .mode = kMin}) ==
        "early stopping: the validation loss needs validation data, got none");
  CHECK(problem({.validation = &data, .monitor = Monitor::TrainingScore, .mode = kMin}) ==
        "early stopping: the training score does not use the validation data given");
  CHECK(problem({.monitor = Monitor::Own, .mode = kMin}) == "early stopping: Monitor::Own needs `measure`");
  CHECK(problem({.monitor = Monitor::TrainingScore, .mode = kMin, .measure = [](Trainer&) { return 0.0; }}) ==
        "early stopping: `measure` works with Monitor::Own only, not with the training score");
}
