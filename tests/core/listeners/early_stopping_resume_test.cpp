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
#include "tests/support/temporary_directory.h"
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
  std::int64_t epoch = 0, iteration = 0;
  double score = 0;
  std::optional<EarlyStopping::Result> best;
  std::string reason;
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
  CAPTURE(problem);
  CHECK(problem.empty() != begin.killedAt.has_value());
  Outcome outcome{.bestFile = readFile(begin.bestFile()),
                  .checkpoint = readFile(newestCheckpoint(checkpoints).value()),
                  .state = stateBits(model),
                  .epoch = model.epoch(),
                  .iteration = model.iteration(),
                  .score = model.score(),
                  .best = stopping->best(),
                  .reason = stopping->reason()};
  // What a checkpoint holds in addition does not belong to the best state.
  if (begin.restoreBest && stopping->best()) CHECK(model.trainingState().empty());
  for (const auto& [name, values] : model.listenerState()) CHECK_LACKS(name, ": block");
  return outcome;
}

void checkSame(const Outcome& a, const Outcome& b) {
  CHECK((a.bestFile == b.bestFile));
  CHECK((a.checkpoint == b.checkpoint));
  CHECK((a.state == b.state));
  CHECK(a.epoch == b.epoch);
  CHECK(a.iteration == b.iteration);
  CHECK(a.score == b.score);
  REQUIRE(a.best.has_value());
  REQUIRE(b.best.has_value());
  CHECK(a.best->epoch == b.best->epoch);
  CHECK(a.best->value == b.best->value);
  CHECK(a.reason == b.reason);
}

}  // namespace

TEST_CASE("a training that is killed and resumed stops at the same epoch, with the same bits and best file") {
  const LogLines quiet;
  std::int64_t combination = 0;
  for (const int workers : {0, 2})
    for (const bool restore : {true, false})
      for (const std::int64_t every : {0, 2}) {
        CAPTURE(workers);
        CAPTURE(restore);
        CAPTURE(every);
        const TemporaryDirectory directory;
        const Begin begin{
            .directory = directory, .workers = workers, .restoreBest = restore, .everyIterations = every};
        const Outcome whole = train(begin);
        CHECK(whole.reason ==
              "the monitored value has not improved for 4 epochs; the best was 0.98 after epoch 3");
        CHECK(whole.epoch == (restore ? 3 : 7));
        CHECK(Network::load(begin.bestFile())->epoch() == 3);
        // Of the merges from epoch 2 on every fourth, so that the combinations take all of them together.
        // Two workers merge after the 2nd and the last of three iterations of an epoch.
        std::vector<std::int64_t> merges;
        for (std::int64_t at = workers == 0 ? 6 : 4; at <= (workers == 0 ? 35 : 21); ++at)
          if (workers == 0 || at % 3 != 1) merges.push_back(at);
        for (auto i = static_cast<std::size_t>(combination++ % 4); i < merges.size(); i += 4) {
          CAPTURE(merges[i]);
          const TemporaryDirectory other;
          Begin killed{
              .directory = other, .workers = workers, .restoreBest = restore, .everyIterations = every};
          killed.killedAt = merges[i];
          train(killed);
          killed.killedAt.reset();
          checkSame(train(killed), whole);
        }
        // The program is started again after it has stopped: nothing is trained.
        checkSame(train(begin), whole);
      }
}

TEST_CASE(
    "a resumed training replaces the best file only by a better model, and creates a missing one at once") {
  const LogLines quiet;
  const TemporaryDirectory directory;
  Begin begin{.directory = directory, .restoreBest = false, .killedAt = 5 * 3};
  const std::string best = train(begin).bestFile;
  begin.killedAt.reset();
  begin.values = {0, 0, 0, 0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6};
  begin.patience = 10;
  CHECK((train(begin).bestFile == best));

  // The file may be of a later epoch than the newest checkpoint.
  std::filesystem::remove_all(directory / "checkpoints");
  begin.values = {0.1, 0.2, 0.95, 0.3, 0.4};
  begin.killedAt = 4 * 3;
  const std::string later = train(begin).bestFile;  // a new training
  CHECK((later != best));
  auto files = checkpointsIn(directory / "checkpoints", "checkpoint");
  REQUIRE(files.back().place.epoch == 3);
  std::filesystem::remove(files.back().path);
  begin.values = {0.1, 0.2, 0.7, 0.6, 0.99};
  begin.killedAt = 4 * 3;
  CHECK((train(begin).bestFile == later));
  begin.killedAt.reset();
  train(begin);
  CHECK(Network::load(begin.bestFile())->epoch() == 5);

  // Another monitor's value does not count.
  MultiLayerNetwork other({.inputShape = {6}, .layers = {Output{.classes = 4}}});
  other.init();
  saveModel(other, begin.bestFile(), {{"earlyStopping.value", "validation loss, min: 0.001"}});
  std::filesystem::remove(newestCheckpoint(directory / "checkpoints").value());
  train(begin);
  CHECK(Network::load(begin.bestFile())->epoch() == 5);
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
  const Outcome outcome = train(begin);
  CHECK(outcome.reason.starts_with("the training has reached its time limit of 13 s"));
  const Outcome whole = train(
      {.directory = other, .workers = 0, .restoreBest = false, .maxTime = seconds(13), .clock = &clock});
  CHECK(outcome.iteration == 8);
  CHECK(whole.iteration == 8);
}

TEST_CASE("impossible numbers of early stopping in a checkpoint are refused") {
  const LogLines quiet;
  const TemporaryDirectory directory;
  Begin begin{.directory = directory, .killedAt = 4 * 3};
  train(begin);
  const auto path = newestCheckpoint(directory / "checkpoints").value();
  const auto whole = MultiLayerNetwork::load(path);
  const auto& all = whole->listenerState();
  const auto numbers = std::ranges::find_if(all, [](const NamedValues& one) {
    return one.values.shape() == Shape{6} && one.name.starts_with("early");
  });
  REQUIRE(numbers != all.end());
  begin.killedAt.reset();
  for (const auto& [index, number] : std::vector<std::pair<std::size_t, double>>{
           {0, kNan}, {0, -1}, {0, 1e300}, {0, 0}, {1, kNan}, {3, 4}, {4, kNan}, {5, -1}, {5, 1e300}}) {
    CAPTURE(index);
    CAPTURE(number);
    double& value = numbers->values.span<double>()[index];
    const double right = std::exchange(value, number);
    whole->save(path);
    value = right;
    MultiLayerNetwork model(whole->configuration());
    loadState(model, path);
    EarlyStopping stopping({.monitor = Monitor::Own,
                            .mode = MonitorMode::Max,
                            .measure = [](Trainer&) { return 0.0; },
                            .sink = [](std::string_view) {}});
    SmallExamples data(5);
    model.setListeners({std::shared_ptr<Listener>(std::shared_ptr<void>(), &stopping)});
    const auto refusal = thrown<FileError>([&] { model.fit(data); });
    CHECK(refusal.starts_with(path.string() +
                              ": cannot be resumed: training state: the listener's \"early stopping ("));
    CHECK(refusal.ends_with(", which is impossible"));
  }
}

}  // namespace muster::test
