// The curves of trainings that are killed and resumed from their checkpoints.
#include "muster/core/io/checkpoint_files.h"
#include "muster/core/io/model_file.h"
#include "muster/core/listeners/checkpoint_listener.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/parallel/parallel_wrapper.h"
#include "tests/support/log_lines.h"
#include "tests/support/on_merge.h"
#include "tests/support/small_examples.h"
#include "tests/support/test.h"
#include "tests/support/toy_wrapper.h"

#ifdef MUSTER_WITH_PAGE
#include "muster/core/listeners/watch/page/curves_file.h"
#include "muster/core/listeners/watch/page/page_listener.h"
#endif
#ifdef MUSTER_WITH_TENSORBOARD
#include "muster/core/listeners/watch/tensorboard/tensorboard_listener.h"
#include "tests/core/listeners/watch/event_reader.h"
#endif

namespace muster::test {
namespace {

constexpr std::int64_t kEpochs = 4;
constexpr std::int64_t kIterations = 12;  // 3 an epoch

/// A training in a directory with its checkpoints.
struct Training {
  const TemporaryDirectory* directory = nullptr;
  std::optional<std::int64_t> killedAt = {};  ///< iteration
  std::int64_t checkpointEvery = 5;           ///< iterations
  std::int64_t units = 5;                     ///< of the network's first layer
  double rate = 0.05;                         ///< learning rate
  bool fromStart = false;                     ///< without the checkpoints, which are removed
  bool stateless = false;                     ///< without the checkpoint's training state
  bool alone = false;                         ///< Model::fit
};

/// Trains from the newest checkpoint, if there is one. A kill is an exception after a merge.
/// @param watchers  called after the checkpoint was loaded.
/// @return the bytes of the parameters.
[[maybe_unused]] std::string train(const Training& training, const std::function<Listeners()>& watchers) {
  MultiLayerNetwork model({.seed = 4,
                           .updater = Adam{.learningRate = training.rate},
                           .inputShape = {6},
                           .layers = {Dense{.units = training.units}, Output{.classes = 4}}});
  model.init();
  const auto checkpoints = *training.directory / "checkpoints";
  if (training.fromStart) std::filesystem::remove_all(checkpoints);
  const auto from = newestCheckpoint(checkpoints);
  if (from) loadState(model, *from);
  if (training.stateless) model.trainingState().clear();
  Listeners listeners = watchers();
  listeners.push_back(
      std::make_shared<CheckpointListener>(CheckpointOptions{.directory = checkpoints,
                                                             .everyEpochs = 0,
                                                             .everyIterations = training.checkpointEvery,
                                                             .resumed = from.has_value()}));
  listeners.push_back(onMerge([&](const MergeEvent& event) {
    if (event.iteration == training.killedAt) throw std::runtime_error("killed");
  }));
  SmallExamples data(6);
  const std::string problem = thrown<std::exception>(
      [&] { fitWith(model, training.alone ? 0 : 2, data, kEpochs - model.epoch(), listeners); });
  CAPTURE(problem);
  CHECK(problem.empty() != training.killedAt.has_value());
  const Tensor& parameters = model.block(BlockKind::Parameters).values;
  return {static_cast<const char*>(parameters.raw()), parameters.bytes()};
}

#ifdef MUSTER_WITH_PAGE
using Points = std::vector<std::pair<std::int64_t, double>>;

/// A page that is not served, with its file of curves, and the trainings in its directory.
struct Page {
  const TemporaryDirectory directory = {};
  std::filesystem::path file = directory / "a.curves.jsonl";
  std::shared_ptr<PageListener> listener = {};

  std::string train(Training training) {
    training.directory = &directory;
    return test::train(training, [&]() -> Listeners {
      listener = std::make_shared<PageListener>(
          PageOptions{.serve = false, .curves = file, .readEvery = std::chrono::nanoseconds(0)});
      return {listener, listener->workers()};
    });
  }
};

std::map<std::string, Points> curvesIn(const std::filesystem::path& file) {
  std::map<std::string, Points> all;
  for (const auto& [name, curve] : readCurves(file).curves)
    for (const auto& [step, value] : curve.points()) all[name].emplace_back(step, value);
  return all;
}

bool rises(const Points& points) {
  return std::ranges::is_sorted(points, {}, &Points::value_type::first) &&
         std::ranges::is_sorted(points, {}, &Points::value_type::second);
}

/// That the log says nothing of curves.
void checkQuiet(const LogLines& log) {
  for (const auto& line : log.all()) CHECK_LACKS(line, "curves");
}

const std::string kOther = "{\"format\":\"other\"}\n";

TEST_CASE("curves of a killed training continue from its checkpoint, as if it had never ended") {
  for (const bool alone : {false, true})
    for (const std::int64_t every : {3, 5}) {
      CAPTURE(every);
      const TemporaryDirectory unwatched;
      Page whole, parts;
      const Training training{.directory = &unwatched, .checkpointEvery = every, .alone = alone};
      const auto bits = whole.train(training);
      const std::int64_t iterations = alone ? 2 * kIterations : kIterations;
      for (const std::int64_t kill : {iterations / 2 + 2, iterations - 1})
        parts.train({.killedAt = kill, .checkpointEvery = every, .alone = alone});
      const LogLines log;
      CHECK(parts.train(training) == bits);
      CHECK(train(training, [] { return Listeners(); }) == bits);
      checkQuiet(log);
      auto expected = curvesIn(whole.file), found = curvesIn(parts.file);
      for (const auto* name : {"score/merged", "score/epoch", "score/worker 0", "training/learning rate"})
        CHECK_MESSAGE(found[name] == expected[name], std::string(name));
      CHECK(found["score/merged"].size() == static_cast<std::size_t>(iterations));
      CHECK(rises(found["at/seconds"]));
      CHECK(rises(found["at/samples"]));
      // Between readings the axis is interpolated; these batches have 1 to 3 examples.
      const auto [last, end] = found["at/samples"].back();
      CHECK(last == iterations);
      CHECK(std::abs(end - 12.0 * kEpochs) <= (every == 3 ? 0 : 3));
      const auto page = parts.listener->still();
      CHECK_CONTAINS(page, R"("name":"score/merged","points":[[1,)");
      CHECK_LACKS(page, "killed");
    }
}

TEST_CASE("a training that resumes no checkpoint replaces the file of curves") {
  Page page;
  page.train({.killedAt = 8});
  const LogLines log;
  page.train({.killedAt = 2, .fromStart = true});
  CHECK(curvesIn(page.file)["score/merged"].size() == 2);
  checkQuiet(log);
}

TEST_CASE(
    "a resumed training has a new file of curves if the old one is missing, broken or of another network") {
  /// Changes the file of a killed training, and resumes it. @param keeps  whether the old file is kept.
  const auto check = [&](const std::string& reason, bool keeps, const auto& change) {
    CAPTURE(reason);
    Page page;
    page.train({.killedAt = 8});
    change(page.file);
    const auto begin = [](const std::filesystem::path& path) { return readFile(path).substr(0, 1 << 20); };
    const std::string old = begin(page.file), name = page.file.string();
    const LogLines log;
    page.train({});
    const auto scores = curvesIn(page.file)["score/merged"];
    REQUIRE(!scores.empty());
    CHECK(textOf(scores.front().first, scores.size()) == "6 7");
    CHECK(log.lineWith({"curves"}) ==
          fmt::format("warning: curves of the resumed training: {}{}; they begin at iteration 5{}", name,
                      reason, keeps ? ", and the old file is kept as " + name + ".old" : ""));
    CHECK(std::filesystem::exists(name + ".old") == keeps);
    if (keeps) CHECK((begin(name + ".old") == old));
  };
  check(": was missing", false, [](const auto& file) { std::filesystem::remove(file); });
  check(": was missing", false, [](const auto& file) { writeFile(file, ""); });
  // It was made by a process that was killed before its fit began.
  check(": was missing", false, [](const auto& file) { writeFile(file, curvesHead("group")); });
  check(", line 1: it is not a file of curves, or has another version", true,
        [](const auto& file) { writeFile(file, kOther); });
  check(", line 2: the curve a has a point that is not a pair of an iteration and a value", true,
        [](const auto& file) {
          auto text = readFile(file);
          text.insert(text.find('\n') + 1, R"({"series":[{"name":"a","points":[["b",1]]}]})"
                                           "\n");
          writeFile(file, text);
        });
  check(": it has 268435457 bytes, and at most 268435456 are read", true,
        [](const auto& file) { std::filesystem::resize_file(file, kMostCurvesBytes + 1); });
  check(": is of another network", true, [](const auto& file) { Page{.file = file}.train({.units = 7}); });
  // A last line that is not whole was being written when the process was killed.
  Page page;
  page.train({.killedAt = 8});
  writeFile(page.file, readFile(page.file) + "{\"series\":[{\"na");
  page.train({});
  CHECK(curvesIn(page.file)["score/merged"].size() == kIterations);
}

TEST_CASE("curves continue from a checkpoint without a training state, and with another learning rate") {
  // Without a state three epochs are trained from their beginnings.
  for (const auto& [again, scores] :
       {std::pair(Training{.stateless = true}, 5 + 9), {Training{.rate = 0.01}, int{kIterations}}}) {
    CAPTURE(scores);
    Page page;
    page.train({.killedAt = 8});
    const auto before = curvesIn(page.file)["score/merged"];
    const LogLines log;
    page.train(again);
    checkQuiet(log);
    const auto after = curvesIn(page.file)["score/merged"];
    REQUIRE(std::ssize(after) == scores);
    CHECK(std::equal(before.begin(), before.begin() + 5, after.begin()));
  }
}

TEST_CASE("a finished training that is started again keeps its curves") {
  const TemporaryDirectory directory;
  const auto file = directory / "a.curves.jsonl";
  MultiLayerNetwork model({.inputShape = {6}, .layers = {Output{.classes = 4}}});
  model.init();
  SmallExamples data(6);
  const auto fit = [&](std::int64_t epochs) {
    model.setListeners({std::make_shared<PageListener>(
        PageOptions{.serve = false, .curves = file, .readEvery = std::chrono::nanoseconds(0)})});
    model.fit(data, epochs);
    model.setListeners({});
    return curvesIn(file)["score/merged"];
  };
  const auto scores = fit(2);
  REQUIRE(scores.size() == 12);
  CHECK(fit(0) == scores);
}

TEST_CASE("an old file of curves gets a name that no other file has") {
  Page page;
  page.train({.killedAt = 8});
  const std::string old = page.file.string() + ".old";
  writeFile(page.file, kOther);
  writeFile(old, "mine");
  std::filesystem::create_symlink("nowhere", old + "-2");
  page.train({});
  CHECK(readFile(old) == "mine");
  CHECK(std::filesystem::is_symlink(old + "-2"));
  CHECK(readFile(old + "-3") == kOther);
}

TEST_CASE("a file of curves that cannot be renamed stays as it is, and the training goes on") {
  Page page;
  // Its name is so long that no file can have it with `.old` at the end.
  page.file = page.directory / (std::string(239, 'a') + ".curves.jsonl");
  page.train({.killedAt = 8});
  writeFile(page.file, kOther);
  const LogLines log;
  page.train({});
  CHECK(readFile(page.file) == kOther);
  CHECK(log.lineWith({"curves: ", "cannot be renamed to ", "the training continues without them"}) != "");
}

TEST_CASE("a fit() that fails before it begins leaves the file of curves as it was") {
  Page page;
  page.train({.killedAt = 8});
  const auto before = readFile(page.file);
  PageListener again({.serve = false, .curves = page.file});
  again.failed(std::make_exception_ptr(std::runtime_error("no data")));
  CHECK(readFile(page.file) == before);
}
#endif

#ifdef MUSTER_WITH_TENSORBOARD
/// What TensorBoard shows of a training's directory with --load_fast=false: files in the order of their
/// names, and a session's start removes all from its step on. @return the steps of these starts.
std::vector<std::int64_t> readBoard(const TemporaryDirectory& directory,
                                    std::map<std::string, std::vector<Scalar>>& all) {
  std::vector<std::int64_t> restarts;
  for (const auto& name : namesIn(directory / "board"))
    for (const auto& record : recordsOf(directory / "board" / name)) {
      const Message event(record);
      const auto step = event.number<std::int64_t>(2);
      if (event.has(7)) {
        CHECK(event.message(7).number<std::int64_t>(1) == 1);
        restarts.push_back(step);
        for (auto& [tag, scalars] : all)
          std::erase_if(scalars, [&](const Scalar& s) { return s.step >= step; });
      }
      if (!event.has(5)) continue;
      const Message value = event.message(5).message(1);
      if (value.has(2)) all[value.text(1)].push_back({step, value.number<float>(2)});
    }
  return restarts;
}

/// Trains with TensorBoard's files in the directory.
std::string trainOnBoard(const Training& training, const TensorBoardOptions& options = {}) {
  return train(training, [&]() -> Listeners {
    const auto board = std::make_shared<TensorBoardListener>(*training.directory / "board", options);
    return {board, board->workers()};
  });
}

TEST_CASE("TensorBoard shows the curves of a killed and resumed training as one") {
  const TemporaryDirectory one, other;
  const auto bits = trainOnBoard({.directory = &one});
  for (const std::int64_t kill : {8, 11}) trainOnBoard({.directory = &other, .killedAt = kill});
  CHECK(trainOnBoard({.directory = &other}) == bits);
  std::map<std::string, std::vector<Scalar>> expected, found;
  CHECK(readBoard(one, expected) == std::vector<std::int64_t>{1});
  // Iterations after those of the checkpoints.
  CHECK(readBoard(other, found) == std::vector<std::int64_t>{1, 6, 11});
  for (const auto* name : {"score/merged", "score/epoch", "score/worker 1", "result/score"})
    CHECK_MESSAGE(found[name] == expected[name], std::string(name));
  CHECK(found["score/merged"].size() == kIterations);
}

TEST_CASE("TensorBoard's curves continue from a checkpoint without a training state, too") {
  const TemporaryDirectory directory;
  trainOnBoard({.directory = &directory, .killedAt = 8});
  trainOnBoard({.directory = &directory, .stateless = true});
  std::map<std::string, std::vector<Scalar>> found;
  CHECK(readBoard(directory, found) == std::vector<std::int64_t>{1, 6});
  CHECK(found["score/merged"].size() == 5 + 9);
}

TEST_CASE("TensorBoard shows the last training of a directory, if no other process writes there") {
  const auto trained = [](bool shared) {
    const TemporaryDirectory directory;
    for (const std::int64_t kill : {8, 3})
      trainOnBoard({.directory = &directory, .killedAt = kill, .fromStart = true}, {.shared = shared});
    std::map<std::string, std::vector<Scalar>> found;
    readBoard(directory, found);
    return found["score/merged"].size();
  };
  CHECK(trained(false) == 3);
  CHECK(trained(true) == 11);
}
#endif

}  // namespace
}  // namespace muster::test
