#include "muster/core/listeners/checkpoint_listener.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "muster/core/base/log.h"
#include "muster/core/io/model_file.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/child_process.h"
#include "tests/support/fake_trainer.h"
#include "tests/support/log_lines.h"
#include "tests/support/small_examples.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using Names = std::set<std::string>;

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

Monitored own(MonitorMode mode, std::function<double(Trainer&)> measure) {
  return {.monitor = Monitor::Own, .mode = mode, .measure = std::move(measure)};
}

/// The value of each epoch, in turn.
Monitored byEpoch(MonitorMode mode, std::vector<double> values) {
  return own(mode, [values = std::move(values)](Trainer& of) {
    return values.at(static_cast<std::size_t>(of.model().epoch() - 1));
  });
}

/// A network in training, and a directory for its checkpoints.
struct Training {
  Training() { network.init(); }
  void start(CheckpointListener& listener) { listener.onFitStart({.trainer = trainer}); }
  /// What a new listener refuses.
  std::string refusal(const CheckpointOptions& options) {
    CheckpointListener listener(options);
    return refusal(listener);
  }
  std::string refusal(CheckpointListener& listener) {
    return test::thrown<FileError>([&] { start(listener); });
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

  test::TemporaryDirectory directory;
  MultiLayerNetwork network{smallNetwork()};
  test::FakeTrainer trainer{network};
};

}  // namespace

TEST_CASE_FIXTURE(
    Training, "a checkpoint listener saves every N epochs, keeps the last K, and deletes no other files") {
  const auto place = directory / "a/b";
  std::filesystem::create_directories(place);
  test::writeFile(place / "run-epoch-0001.safetensors", "of an earlier run");
  test::writeFile(place / "other.txt", "x");

  CheckpointListener listener({.directory = place, .everyEpochs = 2, .keepLast = 2, .baseName = "run"});
  network.setCounters(10, 1);  // it goes on from the earlier run
  listener.onFitStart({.trainer = trainer});
  endEpochs(listener, trainer, 0, 8);  // saves after 2, 4, 6 and 8 epochs
  listener.onFitEnd(trainer);          // waits for the last file
  CHECK(test::namesIn(place) == Names{"other.txt", "run-epoch-0001.safetensors", "run-epoch-0006.safetensors",
                                      "run-epoch-0008.safetensors"});
  CHECK(listener.files().size() == 2);
  const auto loaded = MultiLayerNetwork::load(listener.files().back());
  CHECK(loaded->epoch() == 8);
  CHECK(loaded->iteration() == 80);
}

TEST_CASE_FIXTURE(
    Training,
    "a second training that writes checkpoints into the directory is refused until the first ends") {
  CheckpointListener first({.directory = directory.path()}), second({.directory = directory.path()});
  start(first);
  const auto refused = refusal(second);
  CHECK_CONTAINS(refused, directory.path().string() + ": another training of this process writes");
  const auto child = test::inChild([&] { return refusal(second); });
  CHECK_CONTAINS(child, fmt::format("{}: process {} writes checkpoints into this directory; ",
                                    directory.path().string(), ::getpid()));
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

TEST_CASE_FIXTURE(
    Training,
    "a new training is refused in a directory with later checkpoints that its listener has not written") {
  const auto options = [&](bool exclusive = true) {
    return CheckpointOptions{.directory = directory.path(), .exclusive = exclusive};
  };
  CheckpointListener first(options());
  start(first);
  endEpochs(first, trainer, 0, 1);
  network.setCounters(25, 2);
  trainer.state = {{"some", Tensor::zeros({3})}};
  first.onMerge({.trainer = trainer, .epoch = 2, .iteration = 25});
  first.onFitEnd(trainer);
  const Names names{"checkpoint-epoch-0001.safetensors", "checkpoint-epoch-0002.safetensors",
                    "checkpoint-epoch-0002-iteration-00000025.safetensors"};
  REQUIRE(directory.names() == names);

  CHECK_FALSE(refusal(options()) != "");  // it goes on from the newest
  CHECK_FALSE(refusal(options(false)) != "");
  network.setCounters(24, 2);
  CHECK(refusal(options()) ==
        directory.path().string() +
            ": holds checkpoints of an earlier training, up to "
            "checkpoint-epoch-0002-iteration-00000025.safetensors, and this one begins at epoch 3 (iteration "
            "24); continue it from the newest file, with `resumed` in the CheckpointOptions, choose another "
            "directory or another baseName, or remove these files");
  CHECK(refusal(options(false)) == "");  // the node that wrote them has committed one round more
  network.setCounters(0, 0);
  for (const bool exclusive : {true, false}) {
    CHECK_CONTAINS(refusal(options(exclusive)), ": holds checkpoints of an earlier training, up to ");
    auto resumed = options(exclusive);
    resumed.resumed = true;
    CHECK(refusal(resumed) == "");
    auto other = options(exclusive);
    other.baseName = "other";
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
                            .best = own(MonitorMode::Max, [](Trainer&) { return 1.0; })};
  CheckpointListener first(options);
  train(first, 0, 0);
  REQUIRE(directory.names() == Names{"checkpoint-best.safetensors"});
  const auto start = [&] {
    CheckpointListener listener(options);
    const auto problem = refusal(listener);
    return std::pair(problem, listener.bestValue());
  };
  const auto refused = directory.path().string() +
                       ": holds checkpoint-best.safetensors, the best state of an earlier training";
  CHECK_CONTAINS(start().first, refused);
  first.onFitStart({.trainer = trainer});  // its own
  first.onFitEnd(trainer);
  options.exclusive = false;  // a node that replaces the one that wrote the file
  CHECK(start() == std::pair(std::string(), std::optional(1.0)));
  network.setCounters(0, 0);
  CHECK_CONTAINS(start().first, refused);
  options.best.reset();  // a later resume could take the file for this training's
  CHECK_CONTAINS(start().first, refused);
}

TEST_CASE_FIXTURE(Training,
                  "a training that goes on in its directory begins with the value of its best checkpoint") {
  const CheckpointOptions options{.directory = directory.path(),
                                  .best = byEpoch(MonitorMode::Max, {3, 5, 4, 6})};
  /// Trains one epoch with a new listener. @return the best value before and after it.
  const auto trainOne = [&](std::int64_t epoch) {
    CheckpointListener listener(options);
    listener.onFitStart({.trainer = trainer});
    const auto before = listener.bestValue();
    endEpochs(listener, trainer, epoch, epoch);
    listener.onFitEnd(trainer);
    return std::pair(before, listener.bestValue());
  };
  using Values = std::pair<std::optional<double>, std::optional<double>>;
  CHECK(trainOne(0) == Values(std::nullopt, 3));
  CHECK(trainOne(1) == Values(3, 5));  // a second fit of the same model
  const auto newest = at({.epoch = 2});
  loadState(network, directory.path() / "." / newest.filename());
  CHECK(trainOne(2) == Values(5, 5));  // loaded, without `resumed`
  CHECK(Network::load(bestCheckpointPath(directory.path(), "checkpoint"))->epoch() == 2);

  loadState(network, newest);
  CheckpointListener behind(options);
  const auto told = refusal(behind);
  CHECK_CONTAINS(told,
                 "holds checkpoint-epoch-0003.safetensors, which is newer than "
                 "checkpoint-epoch-0002.safetensors, from which the training is to continue; ");

  loadState(network, at({.epoch = 3}));
  network.setCounters(0, 0);  // a new training, with the values of a file
  CheckpointListener anew(options);
  CHECK_CONTAINS(refusal(anew), "holds checkpoints of an earlier training, up to ");
}

TEST_CASE("the node that replaces a lost one goes on beside its checkpoints, also in the first round") {
  test::TemporaryDirectory directory;
  MultiLayerNetwork network(smallNetwork()), ofSuccessor(smallNetwork());
  for (auto* const one : {&network, &ofSuccessor}) one->init();
  test::FakeTrainer trainer(network), second(ofSuccessor);
  trainer.state = {{"some", Tensor::zeros({3})}};
  const CheckpointOptions options{.directory = directory.path(),
                                  .everyIterations = 1,
                                  .best = own(MonitorMode::Max, [](Trainer&) { return 1.0; }),
                                  .exclusive = false};
  CheckpointListener lost(options), successor(options);
  lost.onFitStart({.trainer = trainer});
  network.setCounters(1, 0);
  lost.onMerge({.trainer = trainer, .iteration = 1});
  endEpochs(lost, trainer, 0, 0);
  lost.onFitEnd(trainer);
  REQUIRE(directory.names().size() == 3);
  CHECK_NOTHROW(successor.onFitStart({.trainer = second}));  // its model lacks the lost node's last merge
  CHECK(successor.bestValue() == 1.0);
  successor.onFitEnd(second);
  CheckpointListener ofAnother(options);
  const auto refusal = test::thrown<FileError>([&] { ofAnother.onFitStart({.trainer = second}); });
  CHECK_CONTAINS(refusal, "holds checkpoints of an earlier training");
}

TEST_CASE_FIXTURE(Training, "a checkpoint that could not be removed remains one of its training") {
  const auto first = at({.epoch = 1});
  CheckpointListener listener({.directory = directory.path(), .keepLast = 1});
  train(listener, 0, 0);
  // A directory that is not empty is in its place when it is to be removed.
  std::filesystem::rename(first, directory / "aside");
  std::filesystem::create_directories(first / "inside");
  {
    const test::LogLines log;
    train(listener, 1, 1);
    REQUIRE(log.all().size() == 1);
    CHECK_CONTAINS(log.all()[0], first.string() + ": an old checkpoint cannot be removed: ");
  }
  std::filesystem::remove_all(first);
  std::filesystem::rename(directory / "aside", first);
  network.init();
  CHECK_NOTHROW(listener.onFitStart({.trainer = trainer}));
  listener.onFitEnd(trainer);
}

TEST_CASE_FIXTURE(Training, "the best checkpoint is replaced only by a state that is accepted") {
  bool accepts = false;
  CheckpointListener listener(
      {.directory = directory.path(),
       .best = own(MonitorMode::Min, [](Trainer& of) { return static_cast<double>(-of.model().epoch()); }),
       .acceptBest = [&](Trainer&) { return accepts; }});
  listener.onFitStart({.trainer = trainer});
  endEpochs(listener, trainer, 0, 0);
  CHECK_FALSE(listener.bestValue());
  accepts = true;
  endEpochs(listener, trainer, 1, 1);
  accepts = false;
  endEpochs(listener, trainer, 2, 2);
  listener.onFitEnd(trainer);
  CHECK(Network::load(listener.bestFile())->epoch() == 2);
}

TEST_CASE_FIXTURE(Training, "a killed training leaves no lock on its directory of checkpoints") {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    try {
      CheckpointListener listener({.directory = directory.path()});
      listener.onFitStart({.trainer = trainer});
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
  listener.onFitStart({.trainer = trainer});
  listener.onFitEnd(trainer);
  CHECK(directory.names().empty());
}

TEST_CASE_FIXTURE(
    Training,
    "a checkpoint listener keeps the last K, every M-th epoch's and the best, also after a restart") {
  CheckpointOptions options{.directory = directory.path(),
                            .keepLast = 1,
                            .keepEveryEpochs = 3,
                            .best = byEpoch(MonitorMode::Min, {5, 3, 4, 4, 6, 3, 2, 9})};
  {
    CheckpointListener listener(options);
    train(listener, 0, 4);
    CHECK(listener.bestValue() == 3);
    CHECK(Network::load(listener.bestFile())->epoch() == 2);
  }
  CHECK(directory.names() == Names{"checkpoint-best.safetensors", "checkpoint-epoch-0003.safetensors",
                                   "checkpoint-epoch-0005.safetensors"});
  options.resumed = true;
  CheckpointListener listener(options);
  listener.onFitStart({.trainer = trainer});
  CHECK(listener.bestValue() == 3);
  endEpochs(listener, trainer, 5, 5);  // equal to the best, so not better
  listener.onFitEnd(trainer);
  CHECK(Network::load(listener.bestFile())->epoch() == 2);
  endEpochs(listener, trainer, 6, 7);
  listener.onFitEnd(trainer);
  CHECK(Network::load(listener.bestFile())->epoch() == 7);
  CHECK(directory.names() == Names{"checkpoint-best.safetensors", "checkpoint-epoch-0003.safetensors",
                                   "checkpoint-epoch-0006.safetensors", "checkpoint-epoch-0008.safetensors"});
  CHECK(newestCheckpoint(directory.path())->filename() == "checkpoint-epoch-0008.safetensors");

  network.save(listener.bestFile());  // by another program
  CHECK_THROWS_AS(CheckpointListener(options).onFitStart({.trainer = trainer}), FileError);
}

TEST_CASE("the best and every M-th epoch's checkpoint are kept whatever the interval of the others is") {
  using std::chrono::hours;
  const auto monitored = byEpoch(MonitorMode::Min, {5, 3, 4, 2, 4});
  for (const auto& [everyEpochs, others] :
       std::vector<std::pair<std::int64_t, Names>>{{0, {}}, {3, {"checkpoint-epoch-0003.safetensors"}}}) {
    CAPTURE(everyEpochs);
    Training training;
    auto& [directory, network, trainer] = training;
    trainer.state = {{"some", Tensor::zeros({3})}};
    CheckpointListener listener({.directory = directory.path(),
                                 .everyEpochs = everyEpochs,
                                 .everyIterations = 100,
                                 .every = hours(1000),
                                 .keepLast = 1,
                                 .keepEveryEpochs = 2,
                                 .best = monitored});
    training.train(listener, 0, 4);
    Names names{"checkpoint-best.safetensors", "checkpoint-epoch-0002.safetensors",
                "checkpoint-epoch-0004.safetensors"};
    names.insert(others.begin(), others.end());
    CHECK(directory.names() == names);
    REQUIRE(std::filesystem::exists(listener.bestFile()));
    CHECK(Network::load(listener.bestFile())->epoch() == 4);
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
  const test::TemporaryDirectory directory;
  MultiLayerNetwork network(
      {.updater = Sgd{.learningRate = 0.1}, .inputShape = {6}, .layers = {Output{.classes = 4}}});
  network.init();
  const auto checkpoints = std::make_shared<CheckpointListener>(
      CheckpointOptions{.directory = directory.path(), .everyIterations = 1});
  network.setListeners({checkpoints, std::make_shared<Counting>()});
  test::SmallExamples data(2);
  network.fit(data, 3);
  for (const int epoch : {1, 2, 3}) {
    const auto saved = Network::load(checkpointPath(directory.path(), "checkpoint", {.epoch = epoch}));
    REQUIRE(saved->listenerState().size() == 1);
    CHECK(saved->listenerState()[0].values.data<float>()[0] == static_cast<float>(epoch));
  }
}

TEST_CASE("invalid rules of which checkpoints to keep are refused by name") {
  CHECK_REFUSED(CheckpointListener({.keepLast = 1, .keepEveryEpochs = -1}),
                "checkpoint listener: keepEveryEpochs cannot be negative, got -1");
  CHECK_REFUSED(CheckpointListener({.keepEveryEpochs = 2}),
                "checkpoint listener: keepEveryEpochs 2 has no effect with keepLast 0, which keeps all");
  CHECK_REFUSED(
      CheckpointListener({.best = Monitored{.monitor = Monitor::Own}}),
      "checkpoint listener: mode must be given, Min or Max: whether a smaller or a larger monitored value "
      "is better");
}

TEST_CASE_FIXTURE(Training, "all checkpoints are kept by default, in a directory that the listener creates") {
  CheckpointListener listener({.directory = directory / "new"});
  listener.onFitStart({.trainer = trainer});
  endEpochs(listener, trainer, 0, 3);
  endEpochs(listener, trainer, 3, 3);  // trained again: replaced, not counted twice
  listener.onFitEnd(trainer);
  CHECK(listener.files().size() == 4);
  CHECK(listener.files().front().filename() == "checkpoint-epoch-0001.safetensors");
  CHECK(std::filesystem::exists(listener.files().back()));
}

TEST_CASE("if a checkpoint cannot be written, the older ones are kept") {
  test::TemporaryDirectory directory;
  test::EchoModel model;
  test::FakeTrainer trainer(model);
  bool full = false;
  const auto save = [&](Model&, const std::filesystem::path& path) {
    if (full) throw FileError(path, "could not be written: No space left on device");
    test::writeFile(path, "x");
  };
  CheckpointListener listener({.directory = directory.path(), .keepLast = 1, .save = save});
  listener.onFitStart({.trainer = trainer});
  endEpochs(listener, trainer, 0, 0);
  full = true;
  CHECK_THROWS_AS(endEpochs(listener, trainer, 1, 1), FileError);
  CHECK(directory.names() == Names{".checkpoint.muster-lock", "checkpoint-epoch-0001.safetensors"});
}

TEST_CASE("a model that cannot be saved is refused before the training") {
  test::TemporaryDirectory directory;
  test::EchoModel model;
  test::FakeTrainer trainer(model);
  CheckpointListener listener({.directory = directory.path()});
  CHECK_REFUSED(listener.onFitStart({.trainer = trainer}),
                "checkpoint listener: the model is not a Network; give a `save` function for it");

  test::writeFile(directory / "file", "x");
  CheckpointListener blocked({.directory = directory / "file/inside", .save = [](Model&, const auto&) {}});
  CHECK_THROWS_AS(blocked.onFitStart({.trainer = trainer}), FileError);
  CHECK_THROWS_AS(CheckpointListener({.directory = "x", .everyEpochs = 0}), InvalidArgument);
  CHECK_THROWS_AS(CheckpointListener({.directory = "x", .keepLast = -1}), InvalidArgument);
  CHECK_THROWS_AS(CheckpointListener({.directory = "x", .baseName = ""}), InvalidArgument);
  CHECK_THROWS_AS(CheckpointListener({.directory = "x", .baseName = "a/b"}), InvalidArgument);
}

namespace {

/// Simulates a worker that trains iterations `first` to `last` of epoch 0, with a merge after each.
void merge(CheckpointListener& listener, Trainer& trainer, std::int64_t first, std::int64_t last) {
  for (std::int64_t iteration = first; iteration <= last; ++iteration) {
    trainer.model().setCounters(iteration, 0);
    listener.onMerge({.trainer = trainer, .iteration = iteration});
  }
}

}  // namespace

TEST_CASE_FIXTURE(Training,
                  "a checkpoint listener saves within an epoch, by iterations or by the clock, and when a "
                  "training is stopped") {
  trainer.state = {{"some", Tensor::zeros({3})}};
  auto now = CheckpointListener::Clock::time_point();
  const auto filesOf = [&](CheckpointOptions options, auto train) {
    const auto place = directory / fmt::format("{}", directory.names().size());
    options.directory = place;
    options.now = [&] { return now; };
    CheckpointListener listener(options);
    listener.onFitStart({.trainer = trainer});
    train(listener);
    listener.onFitEnd(trainer);
    for (const auto& file : listener.files()) CHECK(std::filesystem::exists(file));
    std::string names;
    for (const auto& file : checkpointsIn(place, "checkpoint"))
      names += fmt::format("{}.{} ", file.place.epoch, file.place.iteration);
    return names;
  };
  const auto oneByOne = [&](CheckpointListener& listener, std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i <= last; ++i) {
      merge(listener, trainer, i, i);
      while (listener.busy()) std::this_thread::yield();
    }
  };
  CHECK(filesOf({.directory = {}, .everyEpochs = 0, .everyIterations = 3}, [&](auto& listener) {
          oneByOne(listener, 1, 7);
        }) == "0.3 0.6 0.7 ");  // the last one where the training ended
  CHECK(filesOf({.directory = {}, .every = std::chrono::minutes(10)}, [&](auto& listener) {
          oneByOne(listener, 1, 2);
          now += std::chrono::minutes(10);
          oneByOne(listener, 3, 5);
          listener.onEpochEnd({trainer, 0, 5, 0, 0});
        }) == "0.3 1.0 ");
  const auto loaded =
      MultiLayerNetwork::load(checkpointPath(directory / "0", "checkpoint", {.epoch = 0, .iteration = 3}));
  CHECK(loaded->iteration() == 3);
  REQUIRE(loaded->trainingState().size() == 1);
  CHECK(loaded->trainingState()[0].name == "some");
}

TEST_CASE_FIXTURE(Training, "the newest whole checkpoint is found; a broken one is skipped with a warning") {
  CHECK_FALSE(newestCheckpoint(directory.path()));
  CHECK_FALSE(newestCheckpoint(directory / "missing"));
  const auto save = [&](const CheckpointPlace& place) {
    const auto path = at(place);
    network.save(path);
    return path;
  };
  const auto first = save({1, 0}), second = save({1, 12}), third = save({2, 0}), last = save({10, 0});
  test::writeFile(directory / "checkpoint-epoch-0011.txt", "x");
  test::writeFile(directory / "checkpoint-epoch-.safetensors", "x");
  CHECK(newestCheckpoint(directory.path()) == last);
  test::LogLines log;
  auto bytes = test::readFile(last);
  test::writeFile(last, bytes.substr(0, bytes.size() - 1));
  bytes = test::readFile(third);
  bytes[bytes.size() - 3] = static_cast<char>(bytes[bytes.size() - 3] ^ 1);
  test::writeFile(third, bytes);
  CHECK(newestCheckpoint(directory.path()) == second);
  CHECK_THROWS_AS(MultiLayerNetwork::load(third), FileError);
  auto lines = log.all();
  REQUIRE(lines.size() == 2);
  CHECK(
      lines[0].starts_with("warning: a checkpoint is skipped, the one before it is used: " + last.string()));
  CHECK(lines[1].starts_with("warning: a checkpoint is skipped, the one before it is used: " +
                             third.string() + ": tensor \"output."));
  CHECK(lines[1].ends_with("is damaged: its checksum does not match"));
  // If no checkpoint is intact, a training must not silently start again.
  for (const auto& path : {first, second}) test::writeFile(path, "xy");
  std::filesystem::remove(third);
  log.forget();
  const std::string reason = ": is not a safetensors file: 2 bytes are too short";
  const auto problem = test::thrown<FileError>([&] { newestCheckpoint(directory.path()); });
  CHECK_MESSAGE(
      problem.starts_with(directory.path().string() +
                          ": none of its 3 checkpoints can be used; the newest, " + last.string() + ": "),
      problem);
  lines = log.all();
  REQUIRE(lines.size() == 3);
  CHECK(lines[2] == "warning: a checkpoint is skipped: " + first.string() + reason);
  log.forget();
  for (const auto& path : {last, second}) std::filesystem::remove(path);
  CHECK(test::thrown<FileError>([&] { newestCheckpoint(directory.path()); }) == first.string() + reason);
  CHECK(log.all().empty());  // the error says it
  CHECK_THROWS_WITH_AS(newestCheckpoint(first),
                       (first.string() + ": cannot be read: Not a directory").c_str(), FileError);
}

TEST_CASE(
    "a directory or a pipe with the name of a checkpoint is skipped, and refused where it is in the way") {
  for (const bool pipe : {false, true}) {
    CAPTURE(pipe);
    Training training;
    auto& [directory, network, trainer] = training;
    const auto at = [&](std::int64_t epoch) { return training.at({.epoch = epoch}); };
    const auto make = [&](std::int64_t epoch) {
      if (pipe)
        REQUIRE(::mkfifo(at(epoch).c_str(), 0600) == 0);
      else
        std::filesystem::create_directory(at(epoch));
    };
    for (const int epoch : {2, 3}) network.save(at(epoch));
    make(1);
    make(4);
    {
      const test::LogLines log;
      CHECK(newestCheckpoint(directory.path()) == at(3));
      REQUIRE(log.all().size() == 1);
      CHECK_CONTAINS(log.all()[0], at(4).string() + ": cannot be read: it is ");
    }

    CheckpointOptions options{.directory = directory.path(), .keepLast = 1, .resumed = true};
    network.setCounters(30, 3);
    CHECK(test::thrown<FileError>([&] { CheckpointListener(options).onFitStart({.trainer = trainer}); }) ==
          at(4).string() + ": is not a regular file, but has the name of a checkpoint; remove or rename it");
    std::filesystem::remove(at(4));
    CheckpointListener listener(options);
    training.train(listener, 3, 3);
    CHECK(directory.names() ==  // the first is no checkpoint, so it is not deleted
          Names{"checkpoint-epoch-0001.safetensors", "checkpoint-epoch-0004.safetensors"});

    // It appears during the training: nothing waits for the pipe, and the directory is an error.
    listener.onFitStart({.trainer = trainer});
    make(5);
    const auto problem = test::thrown<FileError>([&] {
      endEpochs(listener, trainer, 4, 4);
      listener.onFitEnd(trainer);
    });
    CHECK(problem ==
          at(5).string() + ": cannot be written: " + (pipe ? "it is not a regular file" : "Is a directory"));
  }
}

TEST_CASE("a resumed training removes a killed process's part of a file, and checkpoints that are too many") {
  for (const bool trains : {true, false}) {
    CAPTURE(trains);
    Training training;
    auto& [directory, network, trainer] = training;
    for (int epoch = 1; epoch <= 3; ++epoch) network.save(training.at({.epoch = epoch}));
    test::writeFile(directory / ".checkpoint-epoch-0004.safetensors.99.0.tmp", "part");
    CheckpointListener listener({.directory = directory.path(), .keepLast = 2, .resumed = true});
    training.start(listener);
    CHECK(directory.names().size() == 4);  // one too many, and the lock
    if (trains) endEpochs(listener, trainer, 3, 3);
    listener.onFitEnd(trainer);
    CHECK(directory.names() ==
          (trains ? Names{"checkpoint-epoch-0003.safetensors", "checkpoint-epoch-0004.safetensors"}
                  : Names{"checkpoint-epoch-0002.safetensors", "checkpoint-epoch-0003.safetensors"}));
  }
}

}  // namespace muster
