#include "muster/core/listeners/checkpoint_listener.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "muster/core/io/model_file.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/child_process.h"
#include "tests/support/fake_trainer.h"
#include "tests/support/log_lines.h"
#include "tests/support/small_examples.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

using Names = std::set<std::string>;
const std::string kBest = "checkpoint-best.safetensors";

std::string epochName(int epoch) {
  return fmt::format("checkpoint-epoch-{:04}.safetensors", epoch);
}

MultiLayerConfiguration smallNetwork() {
  return {
      .seed = 1, .updater = Sgd{.learningRate = 0.1}, .inputShape = {2}, .layers = {Output{.classes = 2}}};
}

void endEpochs(CheckpointListener& listener, Trainer& trainer, std::int64_t first, std::int64_t last) {
  for (std::int64_t epoch = first; epoch <= last; ++epoch) {
    trainer.model().setCounters(10 * (epoch + 1), epoch + 1);
    listener.onEpochEnd({trainer, epoch, 10 * (epoch + 1), 0, 0});
  }
}

/// Simulates a worker that trains iterations `first` to `last` of epoch 0, with a merge after each, and waits
/// for each checkpoint.
void merge(CheckpointListener& listener, Trainer& trainer, std::int64_t first, std::int64_t last) {
  for (std::int64_t iteration = first; iteration <= last; ++iteration) {
    trainer.model().setCounters(iteration, 0);
    listener.onMerge({.trainer = trainer, .iteration = iteration});
    while (listener.busy()) std::this_thread::yield();
  }
}

Monitored measuring(MonitorMode mode, std::function<double(Trainer&)> measure) {
  return {.monitor = Monitor::Own, .mode = mode, .measure = std::move(measure)};
}

/// The value of each epoch, in turn.
Monitored byEpoch(MonitorMode mode, std::vector<double> values) {
  return measuring(mode, [values = std::move(values)](Trainer& of) {
    return values.at(static_cast<std::size_t>(of.model().epoch() - 1));
  });
}

std::int64_t epochIn(const std::filesystem::path& file) {
  return Network::load(file)->epoch();
}

/// A network in training, and a directory for its checkpoints.
struct Training {
  Training() { network.init(); }
  void start(CheckpointListener& listener) { listener.onFitStart({.trainer = trainer}); }
  /// What a listener refuses.
  std::string refusal(const CheckpointOptions& options) {
    CheckpointListener listener(options);
    return refusal(listener);
  }
  std::string refusal(CheckpointListener& listener) {
    return thrown<FileError>([&] { start(listener); });
  }
  /// A whole training, which ends these epochs.
  void train(CheckpointListener& listener, std::int64_t first, std::int64_t last) {
    start(listener);
    endEpochs(listener, trainer, first, last);
    listener.onFitEnd(trainer);
  }
  std::filesystem::path at(const CheckpointPlace& place) const {
    return checkpointPath(directory.path(), "checkpoint", place);
  }

  TemporaryDirectory directory;
  MultiLayerNetwork network{smallNetwork()};
  FakeTrainer trainer{network};
};

TEST_CASE_FIXTURE(Training, "checkpoints are saved every N epochs, the last K kept, and no others deleted") {
  const auto place = directory / "a/b";
  std::filesystem::create_directories(place);
  writeFile(place / "run-epoch-0001.safetensors", "of an earlier run");
  writeFile(place / "other.txt", "x");
  CheckpointListener listener({.directory = place, .everyEpochs = 2, .keepLast = 2, .baseName = "run"});
  network.setCounters(10, 1);  // it goes on from the earlier run
  train(listener, 0, 8);       // saves after 2, 4, 6 and 8 epochs
  CHECK(namesIn(place) == Names{"other.txt", "run-epoch-0001.safetensors", "run-epoch-0006.safetensors",
                                "run-epoch-0008.safetensors"});
  CHECK(listener.files().size() == 2);
  const auto loaded = Network::load(listener.files().back());
  CHECK(textOf(loaded->epoch(), loaded->iteration()) == "8 80");
}

TEST_CASE_FIXTURE(Training,
                  "a second training that writes into the directory is refused until the first ends") {
  CheckpointListener first({.directory = directory.path()}), second({.directory = directory.path()});
  start(first);
  const auto here = directory.path().string();
  CHECK_CONTAINS(refusal(second), here + ": another training of this process writes");
  CHECK_CONTAINS(inChild([&] { return refusal(second); }),
                 fmt::format("{}: process {} writes checkpoints into this directory; ", here, ::getpid()));
  CheckpointListener otherName({.directory = directory.path(), .baseName = "other"});
  start(otherName);
  otherName.onFitEnd(trainer);
  start(first);  // again, without an end
  first.onFitEnd(trainer);
  start(second);
  CheckpointListener shared({.directory = directory.path(), .exclusive = false});
  start(shared);
  second.onFitEnd(trainer);
  CHECK(directory.names().empty());
}

TEST_CASE_FIXTURE(Training,
                  "a new training is refused in a directory with later checkpoints of another one") {
  CheckpointListener first({.directory = directory.path()});
  start(first);
  endEpochs(first, trainer, 0, 1);
  network.setCounters(25, 2);
  trainer.state = {{"some", Tensor::zeros({3})}};
  first.onMerge({.trainer = trainer, .epoch = 2, .iteration = 25});
  first.onFitEnd(trainer);
  const std::string newest = "checkpoint-epoch-0002-iteration-00000025.safetensors";
  const Names names{epochName(1), epochName(2), newest};
  REQUIRE(directory.names() == names);

  const CheckpointOptions exclusive{.directory = directory.path()},
      shared{.directory = directory.path(), .exclusive = false};
  const std::string refused =
      directory.path().string() + ": holds checkpoints of an earlier training, up to ";
  for (const auto& options : {exclusive, shared}) CHECK(refusal(options) == "");  // goes on from the newest
  network.setCounters(24, 2);
  CHECK(refusal(exclusive) ==
        refused + newest +
            ", and this one begins at epoch 3 (iteration 24); continue it from the newest file, with "
            "`resumed` in the CheckpointOptions, choose another directory or another baseName, or remove "
            "these files");
  CHECK(refusal(shared) == "");  // the node that wrote them has committed one round more
  network.setCounters(0, 0);
  for (const auto& options : {exclusive, shared}) {
    CHECK_CONTAINS(refusal(options), refused);
    auto resumed = options, other = options;
    resumed.resumed = true;
    other.baseName = "other";
    CHECK(refusal(resumed) == "");
    CHECK(refusal(other) == "");
  }
  start(first);  // its own files, of a training that began anew
  first.onFitEnd(trainer);
  CHECK(directory.names() == names);  // no lock is left, either
}

TEST_CASE_FIXTURE(Training, "a new training does not begin beside the best checkpoint of another one") {
  CheckpointOptions options{.directory = directory.path(),
                            .everyEpochs = 0,
                            .everyIterations = 100,
                            .best = measuring(MonitorMode::Max, [](Trainer&) { return 1.0; })};
  CheckpointListener first(options);
  train(first, 0, 0);
  REQUIRE(directory.names() == Names{kBest});
  const auto refused = ": holds " + kBest + ", the best state of an earlier training";
  CHECK_CONTAINS(refusal(options), refused);
  start(first);  // its own
  first.onFitEnd(trainer);
  options.exclusive = false;  // a node that replaces the one that wrote the file
  CheckpointListener node(options);
  CHECK(refusal(node) == "");
  CHECK(node.bestValue() == 1.0);
  network.setCounters(0, 0);
  CHECK_CONTAINS(refusal(options), refused);
  options.best.reset();  // a later resume could take the file for this training's
  CHECK_CONTAINS(refusal(options), refused);
}

TEST_CASE_FIXTURE(Training,
                  "a training that goes on in its directory begins with its best checkpoint's value") {
  const CheckpointOptions options{.directory = directory.path(),
                                  .best = byEpoch(MonitorMode::Max, {3, 5, 4, 6})};
  /// Trains one epoch with a new listener. @return the best value before and after it.
  const auto trainOne = [&](std::int64_t epoch) {
    CheckpointListener listener(options);
    start(listener);
    const auto before = listener.bestValue();
    endEpochs(listener, trainer, epoch, epoch);
    listener.onFitEnd(trainer);
    return textOf(before.value_or(0), listener.bestValue().value());
  };
  CHECK(trainOne(0) == "0 3");
  CHECK(trainOne(1) == "3 5");  // a second fit of the same model
  const auto newest = at({.epoch = 2});
  loadState(network, directory.path() / "." / newest.filename());
  CHECK(trainOne(2) == "5 5");  // loaded, without `resumed`
  CHECK(epochIn(directory / kBest) == 2);
  loadState(network, newest);
  CHECK_CONTAINS(refusal(options),
                 fmt::format("holds {}, which is newer than {}, from which the training is to "
                             "continue; ",
                             epochName(3), epochName(2)));
  loadState(network, at({.epoch = 3}));
  network.setCounters(0, 0);  // a new training, with the values of a file
  CHECK_CONTAINS(refusal(options), "holds checkpoints of an earlier training, up to ");
}

TEST_CASE_FIXTURE(Training, "the node that replaces a lost one goes on beside its checkpoints") {
  MultiLayerNetwork ofSuccessor(smallNetwork());
  ofSuccessor.init();
  FakeTrainer second(ofSuccessor);
  trainer.state = {{"some", Tensor::zeros({3})}};
  const CheckpointOptions options{.directory = directory.path(),
                                  .everyIterations = 1,
                                  .best = measuring(MonitorMode::Max, [](Trainer&) { return 1.0; }),
                                  .exclusive = false};
  CheckpointListener lost(options), successor(options);
  start(lost);
  merge(lost, trainer, 1, 1);
  endEpochs(lost, trainer, 0, 0);
  lost.onFitEnd(trainer);
  REQUIRE(directory.names().size() == 3);
  // In the first round its model lacks the lost node's last merge.
  CHECK_NOTHROW(successor.onFitStart({.trainer = second}));
  CHECK(successor.bestValue() == 1.0);
  successor.onFitEnd(second);
  // A listener that is made after the files takes them for another training's.
  CheckpointListener late(options);
  CHECK_CONTAINS(thrown<FileError>([&] { late.onFitStart({.trainer = second}); }),
                 "holds checkpoints of an earlier training");
}

TEST_CASE_FIXTURE(Training, "the best checkpoint is replaced only by a state that is accepted") {
  bool accepts = false;
  CheckpointListener listener({.directory = directory.path(),
                               .best = byEpoch(MonitorMode::Min, {-1, -2, -3}),
                               .acceptBest = [&](Trainer&) { return accepts; }});
  start(listener);
  endEpochs(listener, trainer, 0, 0);
  CHECK_FALSE(listener.bestValue());
  for (const std::int64_t epoch : {1, 2}) {
    accepts = epoch == 1;
    endEpochs(listener, trainer, epoch, epoch);
  }
  listener.onFitEnd(trainer);
  CHECK(epochIn(listener.bestFile()) == 2);
}

TEST_CASE_FIXTURE(Training, "a killed training leaves no lock on its directory of checkpoints") {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    try {
      CheckpointListener listener({.directory = directory.path()});
      start(listener);
      ::raise(SIGKILL);
    } catch (...) {  // doctest must not continue in the child
    }
    ::_exit(1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  CHECK(directory.names() == Names{".checkpoint.muster-lock"});
  CheckpointListener listener({.directory = directory.path()});
  train(listener, 0, -1);
  CHECK(directory.names().empty());
}

TEST_CASE_FIXTURE(Training, "the last K, every M-th epoch's and the best are kept, also after a restart") {
  CheckpointOptions options{.directory = directory.path(),
                            .keepLast = 1,
                            .keepEveryEpochs = 3,
                            .best = byEpoch(MonitorMode::Min, {5, 3, 4, 4, 6, 3, 2, 9})};
  {
    CheckpointListener listener(options);
    train(listener, 0, 4);
    CHECK(listener.bestValue() == 3);
    CHECK(epochIn(listener.bestFile()) == 2);
  }
  CHECK(directory.names() == Names{kBest, epochName(3), epochName(5)});
  options.resumed = true;
  CheckpointListener listener(options);
  start(listener);
  CHECK(listener.bestValue() == 3);
  endEpochs(listener, trainer, 5, 5);  // equal to the best, so not better
  listener.onFitEnd(trainer);
  CHECK(epochIn(listener.bestFile()) == 2);
  endEpochs(listener, trainer, 6, 7);
  listener.onFitEnd(trainer);
  CHECK(epochIn(listener.bestFile()) == 7);
  CHECK(directory.names() == Names{kBest, epochName(3), epochName(6), epochName(8)});
  CHECK(newestCheckpoint(directory.path())->filename() == epochName(8));
  network.save(listener.bestFile());  // by another program
  CHECK(refusal(options) != "");
}

TEST_CASE("the best and every M-th epoch's checkpoint are kept whatever the interval of the others is") {
  for (const std::int64_t everyEpochs : {0, 3}) {
    CAPTURE(everyEpochs);
    Training training;
    training.trainer.state = {{"some", Tensor::zeros({3})}};
    CheckpointListener listener({.directory = training.directory.path(),
                                 .everyEpochs = everyEpochs,
                                 .everyIterations = 100,
                                 .every = std::chrono::hours(1000),
                                 .keepLast = 1,
                                 .keepEveryEpochs = 2,
                                 .best = byEpoch(MonitorMode::Min, {5, 3, 4, 2, 4})});
    training.train(listener, 0, 4);
    Names names{kBest, epochName(2), epochName(4)};
    if (everyEpochs == 3) names.insert(epochName(3));
    CHECK(training.directory.names() == names);
    CHECK(epochIn(listener.bestFile()) == 4);
  }
}

TEST_CASE("a checkpoint holds other listeners' state of the same epoch, in any order of the listeners") {
  // Keeps the number of epochs that it has seen.
  struct Counting final : Listener {
    void onEpochEnd(const EpochEvent& event) override {
      auto& all = event.trainer.model().listenerState();
      if (all.empty()) all.push_back({"epochs", Tensor::zeros({1})});
      all[0].values.data<float>()[0] += 1;
    }
    void onFitEnd(Trainer& trainer) override { trainer.model().listenerState().clear(); }
  };
  const TemporaryDirectory directory;
  MultiLayerNetwork network(
      {.updater = Sgd{.learningRate = 0.1}, .inputShape = {6}, .layers = {Output{.classes = 4}}});
  network.init();
  network.setListeners({std::make_shared<CheckpointListener>(
                            CheckpointOptions{.directory = directory.path(), .everyIterations = 1}),
                        std::make_shared<Counting>()});
  SmallExamples data(2);
  network.fit(data, 3);
  for (const int epoch : {1, 2, 3}) {
    const auto saved = Network::load(directory / epochName(epoch));
    REQUIRE(saved->listenerState().size() == 1);
    CHECK(saved->listenerState()[0].values.data<float>()[0] == static_cast<float>(epoch));
  }
}

TEST_CASE("invalid options, and a model that cannot be saved, are refused by name before the training") {
  const std::string who = "checkpoint listener: ";
  CHECK_REFUSED(CheckpointListener({.keepLast = 1, .keepEveryEpochs = -1}),
                who + "keepEveryEpochs cannot be negative, got -1");
  CHECK_REFUSED(CheckpointListener({.keepEveryEpochs = 2}),
                who + "keepEveryEpochs 2 has no effect with keepLast 0, which keeps all");
  CHECK_REFUSED(
      CheckpointListener({.best = Monitored{.monitor = Monitor::Own}}),
      who + "mode must be given, Min or Max: whether a smaller or a larger monitored value is better");
  for (const CheckpointOptions& wrong : {CheckpointOptions{.directory = "x", .everyEpochs = 0},
                                         {.directory = "x", .keepLast = -1},
                                         {.directory = "x", .baseName = ""},
                                         {.directory = "x", .baseName = "a/b"}})
    CHECK_THROWS_AS(CheckpointListener{wrong}, InvalidArgument);
  const TemporaryDirectory directory;
  EchoModel model;
  FakeTrainer trainer(model);
  CHECK_REFUSED(CheckpointListener({.directory = directory.path()}).onFitStart({.trainer = trainer}),
                who + "the model is not a Network; give a `save` function for it");
  writeFile(directory / "file", "x");
  CheckpointListener blocked({.directory = directory / "file/inside", .save = [](Model&, const auto&) {}});
  CHECK_THROWS_AS(blocked.onFitStart({.trainer = trainer}), FileError);
}

TEST_CASE("if a checkpoint cannot be written, the older ones are kept") {
  const TemporaryDirectory directory;
  EchoModel model;
  FakeTrainer trainer(model);
  bool full = false;
  const auto save = [&](Model&, const std::filesystem::path& path) {
    if (full) throw FileError(path, "could not be written: No space left on device");
    writeFile(path, "x");
  };
  CheckpointListener listener({.directory = directory.path(), .keepLast = 1, .save = save});
  listener.onFitStart({.trainer = trainer});
  endEpochs(listener, trainer, 0, 0);
  full = true;
  CHECK_THROWS_AS(endEpochs(listener, trainer, 1, 1), FileError);
  CHECK(directory.names() == Names{".checkpoint.muster-lock", epochName(1)});
}

TEST_CASE_FIXTURE(Training,
                  "checkpoints within an epoch: by iterations, by the clock, and where it is stopped") {
  trainer.state = {{"some", Tensor::zeros({3})}};
  auto now = CheckpointListener::Clock::time_point();
  const auto filesOf = [&](const std::string& name, CheckpointOptions options, auto train) {
    options.directory = directory / name;
    options.now = [&] { return now; };
    CheckpointListener listener(options);
    start(listener);
    train(listener);
    listener.onFitEnd(trainer);
    std::string names;
    for (const auto& file : checkpointsIn(directory / name, "checkpoint"))
      names += fmt::format("{}.{} ", file.place.epoch, file.place.iteration);
    return names;
  };
  CHECK(filesOf("a", {.everyEpochs = 0, .everyIterations = 3}, [&](auto& listener) {
          merge(listener, trainer, 1, 7);
        }) == "0.3 0.6 0.7 ");  // the last one where the training ended
  CHECK(filesOf("b", {.every = std::chrono::minutes(10)}, [&](auto& listener) {
          merge(listener, trainer, 1, 2);
          now += std::chrono::minutes(10);
          merge(listener, trainer, 3, 5);
          listener.onEpochEnd({trainer, 0, 5, 0, 0});
        }) == "0.3 1.0 ");
  const auto loaded = Network::load(checkpointPath(directory / "a", "checkpoint", {.iteration = 3}));
  CHECK(loaded->iteration() == 3);
  REQUIRE(loaded->trainingState().size() == 1);
  CHECK(loaded->trainingState()[0].name == "some");
}

TEST_CASE_FIXTURE(Training, "the newest whole checkpoint is found; a broken one is skipped with a warning") {
  CHECK_FALSE(newestCheckpoint(directory.path()));
  CHECK_FALSE(newestCheckpoint(directory / "missing"));
  const auto first = at({1, 0}), second = at({1, 12}), third = at({2, 0}), last = at({10, 0});
  for (const auto& path : {first, second, third, last}) network.save(path);
  writeFile(directory / "checkpoint-epoch-0011.txt", "x");
  writeFile(directory / "checkpoint-epoch-.safetensors", "x");
  CHECK(newestCheckpoint(directory.path()) == last);
  LogLines log;
  auto bytes = readFile(last);
  writeFile(last, bytes.substr(0, bytes.size() - 1));
  bytes[bytes.size() - 3] = static_cast<char>(bytes[bytes.size() - 3] ^ 1);
  writeFile(third, bytes);
  CHECK(newestCheckpoint(directory.path()) == second);
  CHECK_THROWS_AS(MultiLayerNetwork::load(third), FileError);
  auto lines = log.all();
  REQUIRE(lines.size() == 2);
  const std::string skipped = "warning: a checkpoint is skipped, the one before it is used: ";
  CHECK(lines[0].starts_with(skipped + last.string()));
  CHECK(lines[1].starts_with(skipped + third.string() + ": tensor \"output."));
  CHECK(lines[1].ends_with("is damaged: its checksum does not match"));
  // If no checkpoint is intact, a training must not silently start again.
  for (const auto& path : {first, second}) writeFile(path, "xy");
  std::filesystem::remove(third);
  log.forget();
  const std::string reason = ": is not a safetensors file: 2 bytes are too short";
  const auto problem = thrown<FileError>([&] { newestCheckpoint(directory.path()); });
  CHECK_CONTAINS(problem, fmt::format("{}: none of its 3 checkpoints can be used; the newest, {}: ",
                                      directory.path().string(), last.string()));
  lines = log.all();
  REQUIRE(lines.size() == 3);
  CHECK(lines[2] == "warning: a checkpoint is skipped: " + first.string() + reason);
  log.forget();
  for (const auto& path : {last, second}) std::filesystem::remove(path);
  CHECK(thrown<FileError>([&] { newestCheckpoint(directory.path()); }) == first.string() + reason);
  CHECK(log.all().empty());  // the error says it
  CHECK(thrown<FileError>([&] { newestCheckpoint(first); }) ==
        first.string() + ": cannot be read: Not a directory");
}

TEST_CASE("a directory or a pipe with a checkpoint's name is skipped, and refused where it is in the way") {
  for (const bool pipe : {false, true}) {
    CAPTURE(pipe);
    Training training;
    auto& [directory, network, trainer] = training;
    const auto at = [&](int epoch) { return directory / epochName(epoch); };
    const auto make = [&](int epoch) {
      if (pipe)
        REQUIRE(::mkfifo(at(epoch).c_str(), 0600) == 0);
      else
        std::filesystem::create_directory(at(epoch));
    };
    for (const int epoch : {2, 3}) network.save(at(epoch));
    for (const int epoch : {1, 4}) make(epoch);
    {
      const LogLines log;
      CHECK(newestCheckpoint(directory.path()) == at(3));
      REQUIRE(log.all().size() == 1);
      CHECK_CONTAINS(log.all()[0], at(4).string() + ": cannot be read: it is ");
    }

    CheckpointOptions options{.directory = directory.path(), .keepLast = 1, .resumed = true};
    network.setCounters(30, 3);
    CHECK(training.refusal(options) ==
          at(4).string() + ": is not a regular file, but has the name of a checkpoint; remove or rename it");
    std::filesystem::remove(at(4));
    CheckpointListener listener(options);
    training.train(listener, 3, 3);
    CHECK(directory.names() == Names{epochName(1), epochName(4)});  // the first is no checkpoint

    // It appears during the training: nothing waits for the pipe, and the directory is an error.
    training.start(listener);
    make(5);
    CHECK(thrown<FileError>([&] {
            endEpochs(listener, trainer, 4, 4);
            listener.onFitEnd(trainer);
          }) ==
          at(5).string() + ": cannot be written: " + (pipe ? "it is not a regular file" : "Is a directory"));
  }
}

TEST_CASE("a resumed training removes a killed process's part of a file, and checkpoints that are too many") {
  for (const bool trains : {true, false}) {
    CAPTURE(trains);
    Training training;
    auto& [directory, network, trainer] = training;
    for (int epoch = 1; epoch <= 3; ++epoch) network.save(directory / epochName(epoch));
    writeFile(directory / ".checkpoint-epoch-0004.safetensors.99.0.tmp", "part");
    CheckpointListener listener({.directory = directory.path(), .keepLast = 2, .resumed = true});
    training.start(listener);
    CHECK(directory.names().size() == 4);  // one too many, and the lock
    if (trains) endEpochs(listener, trainer, 3, 3);
    listener.onFitEnd(trainer);
    CHECK(directory.names() ==
          (trains ? Names{epochName(3), epochName(4)} : Names{epochName(2), epochName(3)}));
  }
}

}  // namespace
}  // namespace muster::test
