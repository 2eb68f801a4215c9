// Early stopping in trainings that are killed and resumed from their checkpoints.
#include "muster/core/io/checkpoint_files.h"
#include "muster/core/listeners/checkpoint_listener.h"
#include "muster/core/listeners/early_stopping.h"
#include "muster/core/listeners/merged_model_average.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/parallel/parallel_wrapper.h"
#include "tests/support/log_lines.h"
#include "tests/support/on_merge.h"
#include "tests/support/small_examples.h"
#include "tests/support/state_bits.h"
#include "tests/support/test.h"
#include "tests/support/toy_wrapper.h"

namespace muster::test {
namespace {

using std::chrono::seconds;

/// By epoch: the best is after epoch 3, so with a patience of 4 the training stops after epoch 7.
const std::vector<double> kValues{0.5, 0.7, 0.98, 0.95, 0.9, 0.97, 0.96, 0.95, 0.94, 0.93};

/// How a training is begun, in a directory with its files.
struct Begin {
  const TemporaryDirectory& directory;
  int workers = 2;  ///< 0: Model::fit
  bool restoreBest = true;
  std::int64_t everyIterations = 0;
  std::optional<std::int64_t> killedAt = {};  ///< iteration
  std::vector<double> values = kValues;
  std::int64_t patience = 4;
  std::chrono::nanoseconds maxTime{0};
  std::chrono::steady_clock::time_point* clock = nullptr;  ///< two seconds pass after each merge

  std::filesystem::path bestFile() const { return directory / "best.safetensors"; }
};

/// What is left of a training.
struct Outcome {
  std::string bestFile, checkpoint;
  std::vector<std::byte> state = {};  // of the model
  std::string numbers, reason;        // of the model, and of the best epoch
  std::int64_t iteration = 0;
  bool operator==(const Outcome&) const = default;
};

/// Trains from the newest checkpoint, if there is one. A kill is an exception after a merge, at which
/// listeners write no more.
Outcome train(const Begin& begin) {
  MultiLayerNetwork model({.seed = 4,
                           .updater = Adam{.learningRate = 0.05},
                           .inputShape = {6},
                           .layers = {Dense{.units = 5}, Dropout{.rate = 0.2}, Output{.classes = 4}}});
  model.init();
  const auto checkpoints = begin.directory / "checkpoints";
  const auto from = newestCheckpoint(checkpoints);
  if (from) loadState(model, *from);
  auto stopping = std::make_shared<EarlyStopping>(EarlyStoppingOptions{
      .monitor = Monitor::Own,
      .mode = MonitorMode::Max,
      .measure =
          [&](Trainer& of) { return begin.values.at(static_cast<std::size_t>(of.model().epoch() - 1)); },
      .patience = begin.patience,
      .maxTime = begin.maxTime,
      .restoreBest = begin.restoreBest,
      .bestFile = begin.bestFile(),
      .notes = {{"by", "a test"}},
      .sink = [](std::string_view) {},
      .now = [&] { return begin.clock ? *begin.clock : std::chrono::steady_clock::now(); }});
  const auto kill = onMerge([&](const MergeEvent& event) {
    if (begin.clock) *begin.clock += seconds(2);
    if (event.iteration == begin.killedAt) throw std::runtime_error("killed");
  });
  const Listeners listeners{
      std::make_shared<CheckpointListener>(CheckpointOptions{.directory = checkpoints,
                                                             .everyIterations = begin.everyIterations,
                                                             .keepLast = 2,
                                                             .resumed = from.has_value()}),
      stopping, std::make_shared<MergedModelAverage>(), kill};
  SmallExamples data(5);
  const auto epochs = static_cast<std::int64_t>(begin.values.size()) - model.epoch();
  const std::string problem = thrown<std::exception>([&] {
    if (begin.workers == 0) return fitWith(model, 0, data, epochs, listeners);
    toyWrapper(model, begin.workers, 2).averageUpdaters(false).listeners(listeners).build().fit(data, epochs);
  });
  if (!problem.empty() && problem.find("killed") == problem.npos) throw Error(problem);
  CHECK(problem.empty() != begin.killedAt.has_value());
  // What a checkpoint holds in addition does not belong to the best state.
  if (begin.restoreBest && stopping->best()) CHECK(model.trainingState().empty());
  for (const auto& [name, values] : model.listenerState()) CHECK_LACKS(name, ": block");
  const auto best = stopping->best().value_or(EarlyStopping::Result{});
  return {.bestFile = readFile(begin.bestFile()),
          .checkpoint = readFile(newestCheckpoint(checkpoints).value()),
          .state = stateBits(model),
          .numbers = textOf(model.epoch(), model.score(), best.epoch, best.value),
          .reason = stopping->reason(),
          .iteration = model.iteration()};
}

std::int64_t epochOf(const std::filesystem::path& file) {
  return Network::load(file)->epoch();
}

TEST_CASE("a training that is killed and resumed stops at the same epoch, with the same bits and best file") {
  const LogLines quiet;
  std::int64_t combination = 0;
  for (const int workers : {0, 2})
    for (const bool restore : {true, false})
      for (const std::int64_t every : {0, 2}) {
        CAPTURE(workers);
        CAPTURE(restore);
        CAPTURE(every);
        const auto beginIn = [&](const TemporaryDirectory& directory) {
          return Begin{
              .directory = directory, .workers = workers, .restoreBest = restore, .everyIterations = every};
        };
        const TemporaryDirectory directory;
        const Begin begin = beginIn(directory);
        const Outcome whole = train(begin);
        CHECK(whole.reason ==
              "the monitored value has not improved for 4 epochs; the best was 0.98 after epoch 3");
        CHECK(whole.numbers.starts_with(restore ? "3 " : "7 "));
        CHECK(whole.numbers.ends_with(" 3 0.98"));
        CHECK(epochOf(begin.bestFile()) == 3);
        CHECK(readModelNotes(begin.bestFile()).at("by") == "a test");
        // Of the merges from epoch 2 on every fourth, so that the combinations take all of them together.
        // Two workers merge after the 2nd and the last of three iterations of an epoch.
        std::vector<std::int64_t> merges;
        for (std::int64_t at = workers == 0 ? 6 : 4; at <= (workers == 0 ? 35 : 21); ++at)
          if (workers == 0 || at % 3 != 1) merges.push_back(at);
        for (auto i = static_cast<std::size_t>(combination++ % 4); i < merges.size(); i += 4) {
          CAPTURE(merges[i]);
          const TemporaryDirectory other;
          Begin killed = beginIn(other);
          killed.killedAt = merges[i];
          train(killed);
          killed.killedAt.reset();
          CHECK((train(killed) == whole));
        }
        CHECK((train(begin) == whole));  // the program is started again: nothing is trained
      }
}

TEST_CASE("a resumed training replaces the best file only by a better model, and creates a missing one") {
  const LogLines quiet;
  const TemporaryDirectory directory;
  Begin begin{.directory = directory, .restoreBest = false, .killedAt = 5 * 3};
  const std::string best = train(begin).bestFile;
  /// Trains, until it is killed after a number of epochs, with these values by epoch.
  const auto fileAfter = [&](std::vector<double> values, std::optional<std::int64_t> epochs = {}) {
    begin.killedAt = epochs ? std::optional(3 * *epochs) : std::nullopt;
    begin.values = std::move(values);
    return train(begin).bestFile;
  };
  begin.patience = 10;
  CHECK((fileAfter({0, 0, 0, 0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6}) == best));

  // The file may be of a later epoch than the newest checkpoint.
  std::filesystem::remove_all(directory / "checkpoints");
  const std::string later = fileAfter({0.1, 0.2, 0.95, 0.3, 0.4}, 4);  // a new training
  CHECK((later != best));
  const auto files = checkpointsIn(directory / "checkpoints", "checkpoint");
  REQUIRE(files.back().place.epoch == 3);
  std::filesystem::remove(files.back().path);
  const std::vector<double> values{0.1, 0.2, 0.7, 0.6, 0.99};
  CHECK((fileAfter(values, 4) == later));
  fileAfter(values);
  CHECK(epochOf(begin.bestFile()) == 5);

  // Another monitor's value does not count.
  MultiLayerNetwork other({.inputShape = {6}, .layers = {Output{.classes = 4}}});
  other.init();
  saveModel(other, begin.bestFile(), {{"earlyStopping.value", "validation loss, min: 0.001"}});
  std::filesystem::remove(newestCheckpoint(directory / "checkpoints").value());
  fileAfter(values);
  CHECK(epochOf(begin.bestFile()) == 5);
}

TEST_CASE("the time limit includes the time before the checkpoint, by a clock of the test") {
  const LogLines quiet;
  const TemporaryDirectory directory, other;
  std::chrono::steady_clock::time_point clock{seconds(100)};
  Begin begin{.directory = directory, .workers = 0, .restoreBest = false, .killedAt = 6};
  begin.maxTime = seconds(13);
  begin.clock = &clock;
  train(begin);
  clock = std::chrono::steady_clock::time_point{seconds(5000)};
  begin.killedAt.reset();
  const Begin whole{
      .directory = other, .workers = 0, .restoreBest = false, .maxTime = seconds(13), .clock = &clock};
  for (const Outcome& outcome : {train(begin), train(whole)}) {
    CHECK(outcome.reason.starts_with("the training has reached its time limit of 13 s"));
    CHECK(outcome.iteration == 8);
  }
}

// stopping_record_test has all kinds of them.
TEST_CASE("impossible numbers of early stopping in a checkpoint are refused") {
  const LogLines quiet;
  const TemporaryDirectory directory;
  Begin begin{.directory = directory, .killedAt = 4 * 3};
  train(begin);
  const auto path = newestCheckpoint(directory / "checkpoints").value();
  const auto model = MultiLayerNetwork::load(path);
  auto& all = model->listenerState();
  const auto numbers = std::ranges::find_if(all, [](const NamedValues& one) {
    return one.values.shape() == Shape{6} && one.name.starts_with("early");
  });
  REQUIRE(numbers != all.end());
  numbers->values.span<double>()[0] = -1;
  model->save(path);
  begin.killedAt.reset();
  const auto refusal = thrown<Error>([&] { train(begin); });
  CHECK_CONTAINS(refusal,
                 path.string() + ": cannot be resumed: training state: the listener's \"early stopping (");
  CHECK_CONTAINS(refusal, "the best epoch -1, which is impossible");
}

}  // namespace
}  // namespace muster::test
