#include "muster/core/listeners/early_stopping.h"

#include "muster/core/data/in_memory.h"
#include "muster/core/eval/any_evaluation.h"
#include "muster/core/listeners/checkpoint_listener.h"
#include "muster/core/listeners/reduce_on_plateau.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/batch_of.h"
#include "tests/support/fake_trainer.h"
#include "tests/support/list_iterator.h"
#include "tests/support/on_merge.h"
#include "tests/support/recording_listener.h"
#include "tests/support/test.h"
#include "tests/support/toy_wrapper.h"

namespace muster::test {
namespace {

const LineSink kQuiet = [](std::string_view) {};

/// Monitors the training score.
EarlyStoppingOptions byScore(EarlyStoppingOptions options) {
  options.monitor = Monitor::TrainingScore;
  options.mode = MonitorMode::Min;
  return options;
}

std::shared_ptr<EarlyStopping> stopping(EarlyStoppingOptions options) {
  return std::make_shared<EarlyStopping>(std::move(options));
}

/// "the best epoch: its value"
std::string bestOf(const EarlyStopping& listener) {
  return listener.best() ? fmt::format("{}: {:.7g}", listener.best()->epoch, listener.best()->value) : "none";
}

/// Trains on the value 1; 0 workers: with Model::fit. One batch per worker and epoch, so SGD moves halfway to
/// 1 in each epoch: p = 1 - 2^-e after e epochs.
void train(Model& model, int workers, std::int64_t epochs, const Listeners& listeners) {
  auto data = ToyIterator::ofValues(std::vector<float>(static_cast<std::size_t>(std::max(workers, 1)), 1));
  fitWith(model, workers, data, epochs, listeners);
}

/// A data set for a model that predicts class 1 with probability x + p.
ListIterator validation(const std::vector<float>& x, const std::vector<float>& labels) {
  const Shape shape{std::ssize(x), 1};
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

/// Training scores of epochs, from epoch 0 on, that a listener is told of.
struct Told {
  explicit Told(const EarlyStoppingOptions& options) : listener(options) {}
  void endEpochs(const std::vector<double>& scores) {
    listener.onFitStart({.trainer = trainer});
    for (std::size_t e = 0; e < scores.size() && listener.reason().empty(); ++e) {
      const auto epoch = static_cast<std::int64_t>(e);
      model.setCounters(10 * (epoch + 1), epoch + 1);
      listener.onEpochEnd({trainer, epoch, 10 * (epoch + 1), scores[e], 0});
    }
  }
  EchoModel model;
  FakeTrainer trainer{model};
  EarlyStopping listener;
};

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
      const auto listener = stopping({.validation = &data,
                                      .mode = MonitorMode::Max,
                                      .patience = 2,
                                      .restoreBest = restore,
                                      .sink = [&](std::string_view line) { lines.emplace_back(line); }});
      ToyModel model;
      train(model, workers, 20, {listener});
      const std::string reason =
          "the validation accuracy has not improved for 2 epochs; the best was 1 after epoch 2";
      CHECK(listener->reason() == reason);
      CHECK(bestOf(*listener) == "2: 1");
      CHECK(data.epochs.size() == 4);
      CHECK(textOf(model.parameters()[0], model.epoch(), model.iteration()) ==
            (restore ? "0.75 2 2" : "0.9375 4 4"));
      std::vector<std::string> expected = {"early stopping after epoch 4: " + reason};
      if (restore)
        expected.emplace_back("early stopping: the model has its best state again, the one after epoch 2");
      CHECK(lines == expected);
    }
}

TEST_CASE("the whole state of the best epoch is restored, and training continues from there") {
  for (const int workers : {0, 1, 2}) {
    CAPTURE(workers);
    const auto listener = stopping(byScore({.patience = 3, .restoreBest = true}));
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
  const auto listener = stopping(byScore({.patience = 1, .restoreBest = true}));
  for (const bool average : {true, false}) {
    CAPTURE(average);
    auto model = scored({5, 3, 4, 4}), reference = scored({5, 3, 4});
    auto data = ToyIterator::ofValues({1, 1});
    auto wrapper = toyWrapper(model, 2).averageUpdaters(average).listeners({listener}).build();
    auto other = toyWrapper(reference, 2).averageUpdaters(average).build();
    for (const bool first : {true, false}) {
      wrapper.fit(data, first ? 4 : 1);
      other.fit(data, first ? 2 : 1);
      CHECK(model.allBits() == reference.allBits());
    }
  }
}

TEST_CASE("the best state is restored when all epochs are done, and after a failure") {
  for (const int workers : {0, 2})
    for (const bool failing : {false, true}) {
      CAPTURE(workers);
      CAPTURE(failing);
      const auto listener = stopping(byScore({.restoreBest = true}));
      const auto failure = onMerge([&](const MergeEvent& event) {
        if (failing && event.epoch == 2) throw std::runtime_error("full");
      });
      auto model = scored({3, 4, 4}), reference = scored({3});
      const auto problem = thrown<std::exception>([&] { train(model, workers, 3, {listener, failure}); });
      CHECK(contains(problem, "full") == failing);
      train(reference, workers, 1, {});
      CHECK(model.allBits() == reference.allBits());
      CHECK(listener->reason().empty());
    }
}

TEST_CASE("the state of an earlier fit() is never restored") {
  const auto listener = stopping(byScore({.restoreBest = true}));
  ToyModel first, second;
  train(first, 0, 2, {listener});
  first.setParameters({7});
  const auto failure =
      mergedListener([](const RecordedCall&, Trainer&) { throw std::runtime_error("at the start"); });
  CHECK_THROWS(train(first, 0, 1, {failure, listener}));  // `listener` is only notified of the end
  train(second, 0, 1, {listener});
  CHECK(textOf(first.parameters()[0], second.parameters()[0]) == "7 0.5");
}

TEST_CASE("patience counts epochs since an improvement above minImprovement; any improvement is the best") {
  Told told(byScore({.patience = 3, .minImprovement = 0.5, .restoreBest = true}));
  // 3.75 to 3.25 is 0.75 below 4, and so an improvement; 2.75 is not more than 0.5 below 3.25.
  told.endEpochs({4, 3.75, 3.25, 2.75, 3, 3, 0});
  CHECK(told.listener.reason() ==
        "the training score has not improved by more than 0.5 for 3 epochs; the best was 2.75 after epoch 4");
  CHECK(told.model.epoch() == 6);
  told.listener.onFitEnd(told.trainer);
  CHECK(textOf(told.model.epoch(), told.model.iteration()) == "4 40");
}

TEST_CASE("only every N-th epoch is evaluated") {
  Told told(byScore({.everyEpochs = 2, .patience = 3}));
  told.endEpochs({0, 5, 0, 5, 0, 5, 0});  // after epoch 4 only two have passed
  CHECK(told.model.epoch() == 6);
  CHECK(told.listener.reason() ==
        "the training score has not improved for 4 epochs; the best was 5 after epoch 2");
}

TEST_CASE("a value that is not finite ends the training with its reason and the best state") {
  auto data = validation({2}, {1});  // a probability of 2.5
  const auto listener = stopping({.validation = &data, .monitor = Monitor::Loss, .mode = MonitorMode::Min});
  ToyModel model;
  train(model, 0, 3, {listener});
  CHECK(model.epoch() == 1);
  CHECK(listener->stopped() == StopReason::NotANumber);
  CHECK(listener->reason() ==
        "the validation loss is nan, perhaps because predictions are not probabilities");
  CHECK_FALSE(listener->best());
  Told told(byScore({.restoreBest = true}));
  told.endEpochs({3, kInfinity, 2});
  CHECK(told.listener.reason() == "the training score is inf; the best was 3 after epoch 1");
  told.listener.onFitEnd(told.trainer);
  CHECK(told.model.epoch() == 1);
}

TEST_CASE("the mode of a number of one's own says whether less or more is better, and is never guessed") {
  for (const bool min : {true, false}) {
    Told* self = nullptr;
    Told told(
        {.monitor = Monitor::Own,
         .mode = min ? MonitorMode::Min : MonitorMode::Max,
         .measure =
             [&](Trainer& of) {
               CHECK(&of == &self->trainer);
               return std::array{2.0, 1.0, 3.0, 2.0}.at(static_cast<std::size_t>(of.model().epoch() - 1));
             },
         .patience = 2});
    self = &told;
    told.endEpochs({0, 0, 0, 0});
    CHECK(bestOf(told.listener) == (min ? "2: 1" : "3: 3"));
    CHECK(told.listener.stopped() == (min ? StopReason::NoImprovement : StopReason::None));
  }
}

TEST_CASE("classes, regressions and labels stop early by their own loss, R2, AUC, accuracy and F1") {
  const Output squares{.classes = 1, .loss = Loss::MeanSquaredError, .activation = Activation::Identity};
  const Output sigmoids{.classes = 2, .loss = Loss::BinaryCrossEntropy, .activation = Activation::Sigmoid};
  const Tensor features = Tensor::of({0, 1, 2, 3, 4, 5}, {6, 1});
  const Tensor numbers = Tensor::of({1, 1.5f, 4, 2, 5, 6}, {6, 1});
  const Tensor labels = Tensor::of({0, 1, 0, 0, 1, 1, 0, 1, 1, 1, 1, 0}, {6, 2});
  const Tensor classes = Tensor::of({0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 0}, {6, 2});
  struct Case {
    Output output;
    Tensor wanted;
    Monitor monitor;
    std::function<double(const AnyEvaluation&)> value;
  };
  const auto loss = [](const AnyEvaluation& e) { return e.loss(); };
  const Case cases[] = {
      {squares, numbers, Monitor::Loss, loss},
      {squares, numbers, Monitor::R2, [](const AnyEvaluation& e) { return e.regression().r2(); }},
      {{.classes = 2}, classes, Monitor::Loss, loss},
      {sigmoids, labels, Monitor::Loss, loss},
      {sigmoids, labels, Monitor::Auc, [](const AnyEvaluation& e) { return e.labels().auc(); }},
      {sigmoids, labels, Monitor::Accuracy, [](const AnyEvaluation& e) { return e.accuracy(); }},
      {sigmoids, labels, Monitor::F1, [](const AnyEvaluation& e) { return e.labels().f1(); }}};
  for (const auto& [output, wanted, monitor, value] : cases)
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
      const auto listener =
          stopping({.validation = &held, .monitor = monitor, .restoreBest = true, .sink = kQuiet});
      fitWith(network, workers, data, 4, {listener});
      REQUIRE(listener->best());
      const double expected = value(network.evaluateTask(held));  // of the best state
      CHECK(listener->best()->value == expected);
      if (monitor == Monitor::Loss)
        CHECK(static_cast<Model&>(network).score(batchOf(features, wanted)) ==
              doctest::Approx(expected).epsilon(1e-6));
    }
}

TEST_CASE("each listener refuses a monitor that the model does not have before the training") {
  const Tensor numbers = Tensor::of({1, 0, 0, 1, 0.5f, 0, 0, 1}, {4, 2});
  InMemoryDataSetIterator held(Tensor::of({0, 1, 2, 3}, {4, 1}), numbers, 4);
  MultiLayerNetwork network(
      {.inputShape = {1}, .layers = {Output{.classes = 2, .loss = Loss::MeanSquaredError}}});
  network.init();
  FakeTrainer trainer(network);
  const TemporaryDirectory directory;
  EarlyStopping early({.validation = &held});
  ReduceOnPlateau plateau({.validation = &held, .monitor = Monitor::Accuracy});
  CheckpointListener checkpoints({.directory = directory.path(), .best = Monitored{.validation = &held}});
  for (const auto& [listener, name] : {std::pair<Listener*, const char*>(&early, "early stopping"),
                                       {&plateau, "reduce on plateau"},
                                       {&checkpoints, "checkpoint listener"}})
    CHECK_REFUSED(listener->onFitStart({.trainer = trainer}),
                  fmt::format("{}: a regression has no accuracy; monitor its loss or R2", name));
}

TEST_CASE("the time limit ends a training at a merge, by a clock of the test") {
  using std::chrono::seconds;
  for (const int workers : {0, 2}) {
    CAPTURE(workers);
    std::chrono::steady_clock::time_point now{};
    const auto clock = onMerge([&](const MergeEvent&) { now += seconds(2); });
    const auto listener =
        stopping(byScore({.patience = 0, .maxTime = seconds(5), .now = [&] { return now; }}));
    ToyModel model;
    train(model, workers, 20, {clock, listener});
    CHECK(model.iteration() == 3);  // one merge an epoch: 2, 4 and 6 s
    CHECK(listener->stopped() == StopReason::Time);
    CHECK(listener->reason().starts_with("the training has reached its time limit of 5 s; the best was"));
    train(model, workers, 1, {clock, listener});  // its time begins anew
    CHECK(listener->stopped() == StopReason::None);
  }
}

// What contradicts itself is refused by Monitored: monitored_test.
TEST_CASE("invalid options of early stopping are refused by name") {
  auto data = validation({0}, {1});
  const auto problem = [&](EarlyStoppingOptions options) {
    options.validation = &data;
    return thrown<InvalidArgument>([&] { EarlyStopping listener(options); });
  };
  const std::string who = "early stopping: ",
                    improvement = "minImprovement must be finite and not negative, ";
  CHECK(problem({.everyEpochs = 0}) == who + "everyEpochs must be at least 1, got 0");
  CHECK(problem({.patience = -1}) == who + "patience cannot be negative, got -1");
  CHECK(problem({.minImprovement = -0.5}) == who + improvement + "got -0.5");
  CHECK(problem({.minImprovement = kInfinity}) == who + improvement + "got inf");
  CHECK(problem({.maxTime = std::chrono::nanoseconds(-1)}) == who + "maxTime cannot be negative, got -1 ns");
  CHECK(problem({.patience = 0}) ==
        who +
            "patience and maxTime are both 0, and neither restoreBest nor bestFile keeps the best state, so "
            "it would only stop at a NaN");
  CHECK(problem({.mode = MonitorMode::Min}) ==
        who + "mode min contradicts the validation accuracy, of which a larger one is better");
  CHECK(problem({.patience = 0, .restoreBest = true}) == "");
  CHECK(problem({}) == "");  // a larger accuracy is better
}

}  // namespace
}  // namespace muster::test
