#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "examples/compare_convergence/names.h"
#include "examples/compare_convergence/options.h"
#include "examples/compare_convergence/results_file.h"
#include "examples/support/gaussian_mixtures.h"
#include "tests/examples/program.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_directory.h"

namespace convergence {
namespace {

using muster::test::Launch;
using muster::test::Outcome;
using muster::test::Program;
using muster::test::readFile;
using muster::test::TemporaryDirectory;

#ifdef MUSTER_WITH_TENSORBOARD
constexpr bool kWithTensorBoard = true;
#else
constexpr bool kWithTensorBoard = false;
#endif
constexpr const char* kExecutable = MUSTER_COMPARE_CONVERGENCE;

/// A grid of two seeds and five arms on a few generated digits. Unpinned, because other tests run
/// concurrently.
std::vector<std::string> tiny(std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{"--test-every", "100", "--data",        "generated",
                                     "--examples",   "200", "--batch",       "10",
                                     "--workers",    "2",   "--frequency",   "1,4",
                                     "--seeds",      "1,2", "--mode",        "averaging,synchronous",
                                     "--out",        "out", "--pin-threads", "false"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

Outcome run(const TemporaryDirectory& directory, std::vector<std::string> arguments) {
  return muster::test::runProgram(kExecutable,
                                  {.directory = directory.path(), .arguments = std::move(arguments)});
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The runs of a results file, whatever its recipe.
std::vector<RunRecord> runsOf(const std::filesystem::path& path) {
  std::istringstream in(readFile(path));
  std::string line;
  std::getline(in, line);
  std::vector<RunRecord> runs;
  while (std::getline(in, line)) runs.push_back(runFromJson(line));
  return runs;
}

const RunRecord& runOf(const std::vector<RunRecord>& runs, Mode mode, std::int64_t frequency,
                       std::int64_t batch) {
  return *std::ranges::find_if(runs, [&](const RunRecord& candidate) {
    return candidate.arm.mode == mode && candidate.arm.frequency == frequency &&
           candidate.arm.batch == batch && candidate.seed == 1;
  });
}

TEST_CASE("--tensorboard creates a directory for each arm and seed") {
  const TemporaryDirectory directory;
  const auto outcome = run(directory, {"--data",  "mixtures",      "--model", "mlp",           "--examples",
                                       "100",     "--workers",     "2",       "--frequency",   "4",
                                       "--seeds", "1,2",           "--mode",  "averaging",     "--out",
                                       "out",     "--pin-threads", "false",   "--tensorboard", "tb"});
  if (!kWithTensorBoard)
    return muster::test::skip("this build has no TensorBoard (libprotobuf-dev, protobuf-compiler)");
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit == 0);
  std::map<std::string, int> files;  // [arm/seed]
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory / "tb"))
    if (entry.is_regular_file())
      ++files[std::filesystem::relative(entry.path().parent_path(), directory / "tb").string()];
  const auto runs = runsOf(directory / "out" / "results.jsonl");
  CHECK(files.size() == runs.size());
  for (const auto& one : runs) {
    const auto name = fmt::format("{}/seed-{}", armFileName(one.arm), one.seed);
    CAPTURE(name);
    CHECK(files[name] == 1);
  }
}

TEST_CASE("a grid is trained on equal numbers of samples, compared and reported") {
  const TemporaryDirectory directory;
  const auto outcome = run(directory, tiny({"--target", "10", "--link", "1Gbit,1ms"}));
  CAPTURE(outcome.err);
  CHECK(outcome.exit == 0);
  CHECK(contains(outcome.out, "5 arms, 2 seeds: 10 runs, 0 of them in out/results.jsonl already\n"));
  CHECK(contains(outcome.out, "samples to 10 %"));
  CHECK(contains(outcome.out, "projected on a link of 1 Gbit/s, 1 ms"));
  CHECK(contains(outcome.err, "run 10/10: "));
#ifdef MUSTER_WITH_PAGE
  const auto report = readFile(directory.path() / "out" / "report.html");
  for (const char* part : {"--target 10", "--link 1Gbit,1ms", " by muster "})
    CHECK_MESSAGE(contains(report, part), part);
#else
  CHECK(contains(outcome.out, "report: left out, as this program was built without the page"));
#endif
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory / "out"))
    files.insert(entry.path().filename().string());
#ifdef MUSTER_WITH_PAGE
  CHECK(files == std::set<std::string>{".lock", "report.html", "results.jsonl", "runs", "table.md"});
#else
  CHECK(files == std::set<std::string>{".lock", "results.jsonl", "table.md"});
#endif
  const auto runs = runsOf(directory.path() / "out" / "results.jsonl");
  REQUIRE(runs.size() == 10);
  for (const auto& record : runs) {
    CHECK(record.points.back().samples == 200);
    CHECK(record.points.front().samples >= 100);
    CHECK(record.points.size() == 2);
    CHECK(record.computeSeconds > 0);
  }
  // Twenty batches: ten rounds of two, or a merge every four iterations and at the end.
  const auto& synchronous = runOf(runs, Mode::Synchronous, 1, 10);
  CHECK(synchronous.points.back().rounds == 10);
  CHECK(synchronous.points.back().iterations == 10);
  CHECK(synchronous.points.back().bytes >= 10 * 4 * 431080);
  CHECK(synchronous.points.back().distance == 0);
  const auto& averaging = runOf(runs, Mode::Averaging, 4, 10);
  CHECK(averaging.points.back().rounds == 3);
  CHECK(averaging.points.back().distance > 0);
  CHECK(runOf(runs, Mode::Single, 1, 10).points.back().iterations == 20);
  CHECK(runOf(runs, Mode::Single, 1, 20).points.back().bytes == 0);
  // The mean of gradients is the gradient of the joined batch, to rounding.
  CHECK(synchronous.points.back().testLoss ==
        doctest::Approx(runOf(runs, Mode::Single, 1, 20).points.back().testLoss).epsilon(1e-3));
#ifdef MUSTER_WITH_PAGE
  const auto curves = readFile(directory.path() / "out" / "runs" / "averaging-w2-f4-b10-nesterovs-lr0.01-u0" /
                               "seed-2.curves.jsonl");
  CHECK(curves.starts_with("{\"format\":\"muster-curves/1\",\"group\":\"averaging every 4, 2 workers\"}\n"));
  CHECK(contains(curves, "{\"name\":\"at/samples\",\"points\":[[4,80],"));
#endif
}

TEST_CASE("shared gradients, a post-local switch and a scaled learning rate are trained as their names say") {
  const TemporaryDirectory directory;
  auto arguments = tiny({"--post-local", "0,5", "--lr-scaling", "linear"});
  *std::ranges::find(arguments, "1,4") = "4";
  *std::ranges::find(arguments, "1,2") = "1";
  *std::ranges::find(arguments, "averaging,synchronous") = "averaging,shared";
  const auto outcome = run(directory, arguments);
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit == 0);
  CHECK(contains(outcome.out, "\naveraging every 4 after 5, 2 workers, rate 0.02 "));
  const auto runs = runsOf(directory.path() / "out" / "results.jsonl");
  REQUIRE(runs.size() == 5);
  const auto& shared = runOf(runs, Mode::Shared, 1, 10);
  CHECK(shared.points.back().rounds == 11);  // the last one is the resynchronisation
  CHECK(shared.points.size() == 2);
  CHECK(shared.points.front().resynchronisations == 0);
  CHECK(shared.points.back().resynchronisations == 1);
  CHECK(shared.points.back().resynchronisationBytes >= 4 * 431080);
  CHECK(shared.points.back().trainingLoss > 0);
  CHECK(shared.points.back().distance == 0);
  CHECK(shared.points.front().bytes > 0);
  CHECK(shared.arm.learningRate == 0.02);
  const auto postLocal = std::ranges::find(
      runs, std::int64_t{5}, [](const RunRecord& record) { return record.arm.synchronousUntil; });
  REQUIRE(postLocal != runs.end());
  // Five rounds of one iteration, one of four, and the last one.
  CHECK(postLocal->points.back().rounds == 7);
  CHECK(postLocal->points.back().iterations == 10);
}

TEST_CASE("an interrupted comparison continues, and ends with the same results") {
  const TemporaryDirectory directory;
  auto whole = tiny();
  *std::ranges::find(whole, "out") = "whole";
  REQUIRE(run(directory, whole).exit == 0);

  {
    Program program(kExecutable, {.directory = directory.path(), .arguments = tiny()});
    REQUIRE(program.awaitText("run 2/10: "));
    program.signal(SIGINT);
    const auto stopped = program.wait();
    CAPTURE(stopped.err);
    CHECK(stopped.exit == 130);
    CHECK(contains(stopped.err, "Interrupted: "));
    CHECK(contains(stopped.out, "the same command continues from there\n"));
#ifdef MUSTER_WITH_PAGE
    CHECK(contains(readFile(directory.path() / "out" / "report.html"), "Not finished: "));
#endif
  }
  const auto path = directory.path() / "out" / "results.jsonl";
  const auto before = runsOf(path);
  CHECK(before.size() >= 2);
  CHECK(before.size() < 10);

  const auto continued = run(directory, tiny());
  CAPTURE(continued.err);
  CHECK(continued.exit == 0);
  CHECK(contains(continued.out, fmt::format("10 runs, {} of them in", before.size())));
  CHECK_FALSE(contains(continued.err, "run 1/10: "));
  const auto runs = runsOf(path), expected = runsOf(directory.path() / "whole" / "results.jsonl");
  REQUIRE(runs.size() == 10);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    CHECK(runs[i].arm == expected[i].arm);
    CHECK(runs[i].seed == expected[i].seed);
    CHECK(runs[i].points.back().testAccuracy == expected[i].points.back().testAccuracy);
    CHECK(runs[i].points.back().testLoss == expected[i].points.back().testLoss);
    // Existing runs were not trained again.
    if (i < before.size()) CHECK(runs[i].points.back().seconds == before[i].points.back().seconds);
  }

  // Run again with another target: nothing is left to train.
  const auto bytes = readFile(path);
  const auto linked = run(directory, tiny({"--link", "1Gbit,1ms"}));
  CHECK(linked.exit == 0);
  CHECK(contains(linked.out, "projected on a link"));
  const auto again = run(directory, tiny({"--target", "99.9"}));
  CHECK(again.exit == 0);
  CHECK_FALSE(contains(again.out, "projected"));
#ifdef MUSTER_WITH_PAGE
  CHECK_FALSE(contains(readFile(directory.path() / "out" / "report.html"), "Projected on a link"));
#endif
  CHECK(contains(again.out, "not reached"));
  CHECK(again.err == "");

  auto other = tiny({"--epochs", "2"});
  *std::ranges::find(other, "1,4") = "1,4,8";
  const auto refused = run(directory, other);
  CHECK(refused.exit == 1);
  CHECK(refused.err ==
        "compare_convergence: out/results.jsonl: holds another grid: --frequency 1,4 (now 1,4,8), --epochs 1 "
        "(now 2); give another --out, or the same options\n");
  CHECK(readFile(path) == bytes);
}

TEST_CASE("closed standard streams change no results of a comparison, and its lock file stays empty") {
  const TemporaryDirectory directory;
  const auto oneSeed = [](const std::string& out) {
    auto arguments = tiny();
    *std::ranges::find(arguments, "1,2") = "1";
    *std::ranges::find(arguments, "out") = out;
    return arguments;
  };
  const auto namesIn = [&](const std::string& out) {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory / out))
      names.insert(entry.path().filename().string());
    return names;
  };
  REQUIRE(run(directory, oneSeed("usual")).exit == 0);
  const auto expected = runsOf(directory / "usual" / "results.jsonl");
  REQUIRE(expected.size() == 5);
  // If descriptors 0 to 2 stayed closed, the lock file would be opened as one of them.
  for (const char* const line : {"<&- >&- 2>&-", "2>&-", ">&- 2>&-"}) {
    const std::string closing = line;
    CAPTURE(closing);
    const auto out = directory / closing;
    auto arguments = oneSeed(closing);
    arguments.insert(arguments.begin(), {"-c", "exec \"$@\" " + closing, "sh", kExecutable});
    const auto outcome =
        muster::test::runProgram("/bin/sh", {.directory = directory.path(), .arguments = arguments});
    CHECK(outcome.exit == 0);
    CHECK(namesIn(closing) == namesIn("usual"));
    REQUIRE(std::filesystem::exists(out / ".lock"));
    CHECK(readFile(out / ".lock") == "");
    const auto runs = runsOf(out / "results.jsonl");
    REQUIRE(runs.size() == expected.size());
    for (std::size_t i = 0; i < runs.size(); ++i) {
      CHECK(runs[i].arm == expected[i].arm);
      CHECK(runs[i].points.back().testAccuracy == expected[i].points.back().testAccuracy);
      CHECK(runs[i].points.back().testLoss == expected[i].points.back().testLoss);
    }
  }
}

TEST_CASE("a training whose loss is not finite is reported, and the others continue") {
  const TemporaryDirectory directory;
  auto arguments = tiny({"--updater", "sgd:1e30"});
  *std::ranges::find(arguments, "1,2") = "1";
  const auto outcome = run(directory, arguments);
  CAPTURE(outcome.err);
  CHECK(outcome.exit == 0);
  CHECK(contains(outcome.out, "diverged"));
  CHECK(contains(outcome.err, "run 5/5: "));
  for (const auto& record : runsOf(directory.path() / "out" / "results.jsonl")) CHECK(record.failed());
}

TEST_CASE("invalid options exit with 2 and a sentence, before anything is written") {
  const TemporaryDirectory directory;
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"--frobnicate"}, "unrecognised option '--frobnicate'"},
      {{"--mode="}, "--mode"},
      {{"--mode", "single"}, "--mode: there is no \"single\"; there are averaging, synchronous, shared"},
      {{"--workers", "1"}, "--workers: each must be between 2 and 1024, got 1"},
      {{"--frequency", "0"}, "--frequency: each must be between 1 and"},
      {{"--mode", "synchronous", "--frequency", "3"}, "--frequency needs the mode averaging"},
      {{"--mode", "", "--strategy", "synchronous", "--frequency", "3"},
       "--frequency needs the mode averaging, or a strategy with the option every"},
      {{"--updater", "adam", "--momentum", "0.5"}, "--momentum needs the updater nesterovs"},
      {{"--lr-scaling", "cubic"}, "--lr-scaling: there is no \"cubic\"; there are none, linear, sqrt"},
      {{"--seeds", "1,1"}, "--seeds: 1 is given twice"},
      {{"--target", "100"},
       "--target must be at least 1 and below 100, a percentage (97, not 0.97), got 100"},
      {{"--target", "0.97"},
       "--target must be at least 1 and below 100, a percentage (97, not 0.97), got 0.97"},
      {{"--test-every", "0"}, "--test-every must be at least 1, got 0"},
      {{"--epochs", "0"}, "--epochs must be between 1 and 1000000, got 0"},
      {{"--link", "10,50us"}, "--link 10,50us: the bandwidth \"10\" needs a unit"},
      {{"--grid", "huge"}, "--grid must be small, readme, resnet18 or rules, got huge"},
      {{"--model", "vgg"}, "--model must be convnet, resnet18 or mlp, got vgg"},
      {{"--width", "8"}, "--width needs the model resnet18, not convnet"},
      {{"--strategy", "dilocco"}, "there is no strategy \"dilocco\"; the nearest is diloco"},
      {{"--strategy", "averaging:every=7"},
       "--strategy averaging:every=7: leave out every=, because --frequency gives it"},
      {{"--strategy", "diloco,averaging", "--mode", "shared,averaging"},
       "--mode and --strategy both name averaging; name it in one of them"},
      {{"--lr-schedule", "cosine", "--updater", "adam"},
       "--lr-schedule cosine needs the updater sgd or nesterovs"},
      {{"--out", "c", "--tensorboard", "c/results.jsonl"},
       kWithTensorBoard ? "--out and --tensorboard cannot both be there"
                        : "--tensorboard cannot be used: this program was built without TensorBoard"},
      {{"--out", ""}, "--out"}};
  for (const auto& [arguments, problem] : cases) {
    CAPTURE(problem);
    const auto refused = run(directory, arguments);
    CAPTURE(refused.err);
    CHECK(refused.exit == 2);
    CHECK(refused.err.starts_with("compare_convergence: "));
    CHECK(std::ranges::count(refused.err, '\n') == 1);
    CHECK(contains(refused.err, problem));
  }
  CHECK(directory.names().empty());
}

TEST_CASE("a rule that is a mode and a strategy is trained once") {
  const char* const arguments[] = {"compare_convergence", "--strategy", "averaging,synchronous,diloco"};
  const auto options = readOptions(3, arguments);
  REQUIRE(options);
  CHECK(options->lists.modes == std::vector{Mode::Synchronous, Mode::Shared});
  CHECK(options->lists.strategies == std::vector<std::string>{"averaging", "diloco"});
}

TEST_CASE("the README's grid is a preset that options can change") {
  const char* const arguments[] = {"compare_convergence", "--grid", "readme", "--seeds", "7"};
  const auto options = readOptions(5, arguments);
  REQUIRE(options.has_value());
  CHECK(options->lists.workers == std::vector<std::int64_t>{2, 4});
  CHECK(options->lists.frequencies == std::vector<std::int64_t>{1, 3, 10, 30});
  CHECK(options->lists.seeds == std::vector<std::int64_t>{7});
  CHECK(options->data.name == "mnist");
  CHECK(options->epochs == 3);
}

TEST_CASE(
    "ResNet-18's grid has four arms of plain SGD, whose learning rate is scaled with the joined batch") {
  const char* const arguments[] = {"compare_convergence", "--grid", "resnet18", "--batch", "4"};
  const auto options = readOptions(5, arguments);
  REQUIRE(options.has_value());
  CHECK(options->model == "resnet18");
  CHECK(options->l2 == 0);
  CHECK(options->data.name == "mnist");
  CHECK(options->data.trainLimit() == 12800);
  CHECK(options->testEvery == 12800);
  CHECK(options->data.testLimit() == 2000);
  const Grid grid = expandGrid(options->lists);
  const auto arm = [](Mode mode, std::int64_t workers, std::int64_t frequency, std::int64_t batch,
                      double rate) { return Arm{mode, workers, frequency, batch, "sgd", rate, 0}; };
  CHECK(grid.arms == std::vector<Arm>{arm(Mode::Single, 1, 1, 4, 0.1), arm(Mode::Single, 1, 1, 8, 0.2),
                                      arm(Mode::Averaging, 2, 1, 4, 0.2),
                                      arm(Mode::Averaging, 2, 4, 4, 0.2)});
  CHECK(grid.seeds.size() >= 3);
  const char* const fewer[] = {"compare_convergence", "--grid", "resnet18", "--examples", "100"};
  CHECK(readOptions(5, fewer)->data.trainLimit() == 100);
  CHECK(readOptions(5, fewer)->data.testLimit() == 100);
}

TEST_CASE("ResNet-18's grid is trained, continued, and reported beside the joined batch") {
  const TemporaryDirectory directory;
  const std::vector<std::string> arguments{
      "--grid",           "resnet18", "--data",        "generated", "--width",         "4",
      "--train-examples", "64",       "--out",         "out",       "--test-examples", "50",
      "--seeds",          "1,2",      "--pin-threads", "false",     "--batch",         "8"};
  const auto outcome = run(directory, arguments);
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit == 0);
  CHECK(contains(outcome.out, "ResNet-18 with 4 channels in its first stage, "));
  CHECK(contains(outcome.out, "beside one worker, batch 16, points"));
  CHECK(contains(outcome.out, "statistics recomputed: accuracy, %"));
  const auto runs = runsOf(directory.path() / "out" / "results.jsonl");
  REQUIRE(runs.size() == 8);
  for (const auto& record : runs) CHECK(record.points.back().samples == 64);
  CHECK(runOf(runs, Mode::Averaging, 4, 8).points.back().iterations == 4);
  CHECK(runOf(runs, Mode::Averaging, 4, 8).points.back().rounds == 1);
  const auto table = readFile(directory.path() / "out" / "table.md");
  CHECK(contains(table,
                 "\n| arm | learning rate | updates a worker | accuracy, % | beside one worker, batch 16, "
                 "points | statistics recomputed: accuracy, % | beside it, points "
                 "|\n|---|---|---|---|---|---|---|\n| one worker, "
                 "batch 8 | 0.1 | 8 | "));
  CHECK(contains(table, "\n| 2 workers, batch 8 each, averaging every 4 | 0.2 | 4 | "));
  CHECK(contains(run(directory, arguments).out, "8 runs, 8 of them in out/results.jsonl already\n"));
  auto wider = arguments;
  wider[5] = "8";
  CHECK(contains(run(directory, wider).err, "holds another grid: --width 4 (now 8)"));
}

TEST_CASE("the grid of rules trains strategies by name, and arranges them by frequency") {
  const TemporaryDirectory directory;
  const auto outcome = run(directory, {"--grid",
                                       "rules",
                                       "--train-examples",
                                       "640",
                                       "--test-examples",
                                       "100",
                                       "--strategy",
                                       "averaging,diloco:rate=0.5",
                                       "--workers",
                                       "2",
                                       "--frequency",
                                       "5,10",
                                       "--seeds",
                                       "1,2",
                                       "--lr-schedule",
                                       "cosine",
                                       "--pin-threads",
                                       "false",
                                       "--out",
                                       "out"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit == 0);
  CHECK(contains(outcome.out, "6 arms, 2 seeds: 12 runs"));
  CHECK(contains(outcome.out, "\n2 workers, accuracy in %  "));
  CHECK(contains(outcome.out, "\ndiloco:rate=0.5  "));
  const auto table = readFile(directory.path() / "out" / "table.md");
  CHECK(contains(
      table, "\n| 2 workers, accuracy in % | every 5 | every 10 |\n|---|---|---|\n| one worker, batch 32 |"));
  const auto runs = runsOf(directory.path() / "out" / "results.jsonl");
  REQUIRE(runs.size() == 12);
  for (const auto& record : runs) {
    CHECK(record.points.back().samples == 1280);
    if (record.arm.mode != Mode::Strategy) continue;
    CHECK(record.points.back().iterations == 40);
    CHECK(record.points.back().rounds == 40 / record.arm.frequency);
  }
#ifdef MUSTER_WITH_PAGE
  CHECK(contains(readFile(directory.path() / "out" / "report.html"), "\"diloco:rate=0.5\""));
#endif
  const auto help = run(directory, {"--strategy", "help"});
  CHECK(help.exit == 0);
  CHECK(contains(help.out, "\ndiloco "));
}

TEST_CASE("a seed gives the same Gaussian mixtures, with other examples for the test") {
  const auto one = example::gaussianMixtures(1, true, 200), again = example::gaussianMixtures(1, true, 100);
  const auto test = example::gaussianMixtures(1, false, 100);
  CHECK(one->size() == 200);
  CHECK(one->classes() == 4);
  std::array<int, 4> counts{};
  for (std::int64_t i = 0; i < 100; ++i) {
    CHECK(std::ranges::equal(one->image(i), again->image(i)));
    CHECK(one->label(i) == again->label(i));
    ++counts[static_cast<std::size_t>(one->label(i))];
  }
  CHECK(std::ranges::count(counts, 0) == 0);
  CHECK_FALSE(std::ranges::equal(one->image(0), test->image(0)));
}

TEST_CASE("help explains every option and exits with 0") {
  const TemporaryDirectory directory;
  const auto help = run(directory, {"--help"});
  CHECK(help.exit == 0);
  CHECK(help.err == "");
  for (const char* option :
       {"model",   "width",     "train-examples", "test-examples", "grid",       "mode",
        "workers", "frequency", "batch",          "updater",       "lr-scaling", "post-local",
        "seeds",   "epochs",    "test-every",     "momentum",      "l2",         "pin-threads",
        "data",    "data-dir",  "examples",       "target",        "link",       "out",
        "help",    "strategy",  "lr-schedule"})
    CHECK_MESSAGE(contains(help.out, "\n  --" + std::string(option) + " "), option);
}

}  // namespace
}  // namespace convergence
