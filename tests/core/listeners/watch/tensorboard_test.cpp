#include "muster/core/listeners/watch/tensorboard/tensorboard_listener.h"

#include <sys/wait.h>

#include "muster/core/listeners/collect_scores_listener.h"
#include "muster/core/listeners/watch/tensorboard/event_file.h"
#include "tests/core/listeners/watch/event_reader.h"
#include "tests/support/child_process.h"
#include "tests/support/log_lines.h"
#include "tests/support/recording_listener.h"
#include "tests/support/skip.h"
#include "tests/support/test.h"
#include "tests/support/toy_wrapper.h"

namespace muster::test {
namespace {

constexpr std::int64_t kWidth = 5;

/// Two workers train a toy model for two epochs of seven batches, averaging every second iteration.
struct Watched {
  explicit Watched(TensorBoardOptions options = {})
      : board(std::make_shared<TensorBoardListener>(directory / "runs/a", options)),
        model({.size = kWidth, .training = {.updater = Sgd{.learningRate = 0.1}}}),
        data(randomBatches(3, 7, 4, kWidth, true), kWidth) {}

  void fit() {
    auto wrapper = toyWrapper(model, 2, 2)
                       .measureDivergence(true)
                       .listeners({board, board->workers(), scores, steps})
                       .build();
    board->text("plan", wrapper.plan());
    plan = wrapper.plan();
    board->hyperParameters({{"workers", 2.0}, {"strategy", "averaging"}, {"pinned", false}}, {"accuracy"},
                           "arm");
    wrapper.fit(data, 2);
    board->result("accuracy", 0.75);
  }

  TemporaryDirectory directory;
  std::shared_ptr<TensorBoardListener> board;
  std::shared_ptr<CollectScoresListener> scores = std::make_shared<CollectScoresListener>();
  std::shared_ptr<RecordingListener> steps = workerListener();
  ToyModel model;
  ToyIterator data;
  std::string plan;
};

std::vector<Scalar> mergedScores(const CollectScoresListener& scores) {
  std::vector<Scalar> all;
  for (const auto& merge : scores.merges()) all.push_back({merge.iteration, static_cast<float>(merge.score)});
  return all;
}

std::vector<Scalar> workersScores(const RecordingListener& steps, int worker) {
  std::vector<Scalar> all;
  for (const auto& step : steps.calls("iteration"))
    if (step.worker == worker) all.push_back({step.iteration + 1, static_cast<float>(step.score)});
  return all;
}

/// Calls `use(event, its first value)` for each event that has one.
void eachValue(const std::filesystem::path& file,
               const std::function<void(const Message&, const Message&)>& use) {
  for (const auto& record : recordsOf(file))
    if (const Message event(record); event.has(5)) use(event, event.message(5).message(1));
}

TEST_CASE("the checksum is a masked CRC32C") {
  CHECK(crc32c("123456789") == 0xe3069283U);  // the check value of the catalogue of CRCs
  CHECK(maskedCrc32c("123456789") == masked(0xe3069283U));
  CHECK(maskedCrc32c("") == masked(0));
}

TEST_CASE("an event file holds each score of workers and merges, with correct checksums") {
  Watched run;
  run.fit();
  const auto records = recordsOf(run.board->file());
  CHECK(Message(records.front()).text(3) == "brain.Event:2");
  const auto scalars = scalarsOf(run.board->file());
  CHECK(scalars.at("score/merged") == mergedScores(*run.scores));
  CHECK(scalars.at("score/worker 0") == workersScores(*run.steps, 0));
  CHECK(scalars.at("score/worker 1") == workersScores(*run.steps, 1));
  CHECK(scalars.at("merge/divergence").size() == run.scores->merges().size());
  CHECK(scalars.at("score/epoch").size() == 2);
  CHECK(scalars.at("result/accuracy") == std::vector<Scalar>{{run.model.iteration(), 0.75F}});
  CHECK(scalars.at("result/score").back().value == static_cast<float>(run.scores->epochs().back().score));
  CHECK(run.board->file().parent_path() == run.directory / "runs/a");
  CHECK(run.board->file().filename().string().starts_with("events.out.tfevents."));
}

TEST_CASE("an event file holds histograms of the last round, however seldom they are due") {
  Watched run({.histogramsEvery = 1000});
  run.data.knownExamples = 7 * 4;  // so it has 7 batches
  run.data.knownBatchSize = 4;
  run.fit();
  std::vector<std::int64_t> steps;
  eachValue(run.board->file(), [&](const Message& event, const Message& value) {
    if (value.text(1).starts_with("parameters/")) steps.push_back(event.number<std::int64_t>(2));
  });
  CHECK(steps == std::vector<std::int64_t>{2, run.model.iteration()});
}

TEST_CASE("an event file holds histograms of parameters after a round, and of the round's changes") {
  Watched run({.histogramsEvery = 1});
  run.model.setParameters({1, 2, 3, 4, 5});
  run.fit();
  int parameters = 0, updates = 0;
  eachValue(run.board->file(), [&](const Message& event, const Message& value) {
    if (!value.has(5)) return;
    const Message histogram = value.message(5);
    CHECK(histogram.number<double>(3) == kWidth);
    CHECK(histogram.text(6).size() == histogram.text(7).size());
    if (value.text(1).starts_with("parameters/")) ++parameters;
    if (value.text(1).starts_with("updates/") && ++updates == 1) {
      // The first round moves parameters of 1 to 5 towards data of about 0.
      CHECK(histogram.number<double>(4) < 0);
      CHECK(event.number<std::int64_t>(2) == 2);
    }
  });
  CHECK(parameters == static_cast<int>(run.scores->merges().size()));
  CHECK(updates == parameters);
  CHECK(scalarsOf(run.board->file()).at("norm/p").size() == run.scores->merges().size());
}

TEST_CASE("each listener has an event file of its own, also in one directory") {
  const TemporaryDirectory directory;
  std::set<std::filesystem::path> files;
  for (int i = 0; i < 3; ++i) files.insert(TensorBoardListener(directory.path()).file());
  CHECK(files.size() == 3);
  CHECK(directory.names().size() == 3);
}

TEST_CASE("TensorBoard reads the event file") {
#ifdef MUSTER_PYTHON
  Watched run({.histogramsEvery = 4});
  run.fit();
  const char* const chosen = std::getenv("MUSTER_TENSORBOARD_PYTHON");
  const auto output = run.directory / "read";
  const auto command = fmt::format("'{}' '{}' '{}' >'{}' 2>'{}'", chosen != nullptr ? chosen : MUSTER_PYTHON,
                                   MUSTER_READ_EVENTS, run.board->file().parent_path().string(),
                                   output.string(), (run.directory / "errors").string());
  const int status = std::system(command.c_str());
  const std::string text = readFile(output);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
    return skip("no TensorBoard (pip install tensorboard; MUSTER_TENSORBOARD_PYTHON names its Python): " +
                text);
  INFO(text << readFile(run.directory / "errors"));
  REQUIRE(status == 0);
  const auto has = [&](const std::string& line) { return contains(text, line + "\n"); };
  for (const auto& [tag, scalars] : scalarsOf(run.board->file()))
    for (const auto& [step, value] : scalars)
      CHECK_MESSAGE(has(fmt::format("scalar|{}|{}|{:.17g}", tag, step, value)), tag << " at " << step);
  CHECK(has("text|plan|" + run.plan));
  for (const char* line :
       {"histogram|parameters/p|2|5|5|50", "histogram|updates/p|2|5|5|50", "option|workers|2.0",
        "option|strategy|averaging", "option|pinned|False", "group|arm", "status|1", "metric|result/score",
        "metric|result/accuracy", "column|workers|3"})
    CHECK_MESSAGE(has(line), line);
#else
  skip("there is no Python 3 here");
#endif
}

TEST_CASE(
    "on a full disk there is one warning, the same training, and a file that ends with a whole record") {
  Watched unlimited, limited;
  unlimited.fit();
  const auto file = limited.board->file();
  const std::string told = inChild([&] {
    limitFileSize(1500);
    const LogLines lines;
    limited.fit();
    std::string text;
    for (const auto& line : lines.all()) text += line + "\n";
    return text + (limited.model.allBits() == unlimited.model.allBits() ? "same bits" : "other bits");
  });
  CHECK(told.find("warning: " + file.string()) == 0);
  CHECK_CONTAINS(told, "the training continues");
  CHECK_LACKS(told.substr(1), "warning");
  CHECK(told.ends_with("\nsame bits"));
  CHECK(std::filesystem::file_size(file) <= 1500);
  CHECK(recordsOf(file).size() > 5);  // throws for one that is cut off
}

TEST_CASE("a file in place of the directory and invalid options are refused") {
  const TemporaryDirectory directory;
  writeFile(directory / "file", "");
  CHECK_CONTAINS(thrown<FileError>([&] { TensorBoardListener(directory / "file"); }), "cannot make");
  CHECK_REFUSED(TensorBoardListener(directory.path(), {.everyIterations = 0}),
                "TensorBoard: everyIterations must be at least 1, got 0");
  CHECK_REFUSED(TensorBoardListener(directory.path(), {.histogramsEvery = -1}),
                "TensorBoard: histogramsEvery cannot be negative, got -1");
  CHECK(directory.names() == std::set<std::string>{"file"});
}

TEST_CASE("tags and texts that are not UTF-8 or hold control characters do not break the file") {
  const TemporaryDirectory directory;
  TensorBoardListener board(directory.path());
  board.scalar("a\xff\n", 1, 2);
  board.text("t", "\xfe");
  board.hyperParameters({{"\xff", "\xff"}});
  const auto scalars = scalarsOf(board.file());
  CHECK(scalars.at("a\\xff\\x0a") == std::vector<Scalar>{{1, 2}});
  CHECK(recordsOf(board.file()).size() == 5);
}

}  // namespace
}  // namespace muster::test
