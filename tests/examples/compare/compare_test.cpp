#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "muster/core/comparison/results_file.h"
#include "tests/examples/program.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/texts.h"

// muster compare, as a user runs it.

namespace comparing {
namespace {

using muster::ResultsFile;
using muster::RunRecord;
using muster::test::contains;
using muster::test::errorOf;
using muster::test::Outcome;
using muster::test::Program;
using muster::test::readFile;
using muster::test::succeeded;
using muster::test::TemporaryDirectory;
using muster::test::writeFile;
using Texts = std::vector<std::string>;

/// A small network on 200 generated digits; two workers, unpinned, because other tests run at the same time.
constexpr const char* kDigits = R"({"format": "muster-run/1",
  "data": {"type": "generated", "trainExamples": 200, "testExamples": 100, "batch": 10},
  "network": {"format": "muster.MultiLayerConfiguration", "version": 1, "l2": 0.0005,
              "updater": {"type": "nesterovs", "learningRate": 0.01, "momentum": 0.9},
              "layers": [{"type": "flatten"}, {"type": "dense", "units": 16, "activation": "relu"},
                         {"type": "output", "classes": 10}]},
  "training": {"workers": 2, "strategy": {"name": "averaging", "every": 1}, "pinThreads": false}})";

/// Two classes of rows, mostly told apart by a + b; 80 rows without a test set.
std::string rows() {
  std::string text = "a,b,kind\n";
  for (int i = 0; i < 80; ++i) {
    const double a = (i * 37 % 80) / 80., b = (i * 53 % 80) / 80.;
    text += fmt::format("{:.3f},{:.3f},{}\n", a, b, a + b > 0.95 ? "high" : "low");
  }
  return text;
}

struct Directory : TemporaryDirectory {
  Directory() {
    writeFile(*this / "run.json", kDigits);
    writeFile(*this / "rows.csv", rows());
  }
  Outcome run(Texts arguments) const {
    arguments.insert(arguments.begin(), "compare");
    return muster::test::runProgram(MUSTER_PROGRAM, {.directory = path(), .arguments = std::move(arguments)});
  }
  std::vector<RunRecord> results(const std::string& out = "out") const {
    return ResultsFile(*this / out / "results.jsonl").runs();
  }
};

/// Four arms with two seeds.
Texts four(const std::string& out = "out") {
  return {"run.json", "--arm",       "averaging every={1,4}",
          "--arm",    "synchronous", "--arm",
          "joined",   "--seeds",     "1,2",
          "--out",    out,           "--test-every",
          "100"};
}

const RunRecord& runOf(const std::vector<RunRecord>& runs, const std::string& arm) {
  return *std::ranges::find(runs, arm, &RunRecord::arm);
}

TEST_CASE("arms are trained on equal numbers of samples, compared and reported") {
  const Directory directory;
  auto arguments = four();
  arguments.insert(arguments.end(), {"--target", "10", "--link", "1Gbit,1ms"});
  const auto outcome = succeeded(directory.run(arguments));
  CHECK(contains(outcome.out, "200 images to train with and 100 to test with"));
  CHECK(contains(outcome.out, "4 arms, 2 seeds: 0 of 8 runs finished in out/results.jsonl\n"));
  CHECK(contains(outcome.out, "Nothing was tuned: "));
  CHECK(contains(outcome.out, "--tune learningRate=0.003,0.01,0.03"));  // about the file's own
  CHECK(contains(outcome.out, "samples to 10 %"));
  CHECK(contains(outcome.out, "projected on a link of 1 Gbit/s, 1 ms"));
  CHECK(contains(outcome.err, "run 8/8: "));
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory / "out"))
    files.insert(entry.path().filename().string());
  if (muster::test::kWithPage) CHECK(files.erase("runs") == 1);
  CHECK(files ==
        std::set<std::string>{".lock", "plots", "report.html", "results.jsonl", "table.md", "tables"});
  for (const char* file : {"plots/differences.svg", "plots/differences.csv", "plots/score-by-samples.svg",
                           "plots/projected-speed.csv", "tables/arms.csv", "tables/link.csv"})
    CHECK_MESSAGE(std::filesystem::exists(directory / "out" / file), file);
  const auto runs = directory.results();
  REQUIRE(runs.size() == 8);
  for (const auto& run : runs) {
    CHECK(run.end().samples == 200);
    CHECK(run.points.size() == 2);
    CHECK(run.computeSeconds > 0);
  }
  // Twenty batches: ten rounds of two, or a merge every four iterations and at the end.
  const auto& synchronous = runOf(runs, "synchronous");
  CHECK(synchronous.end().rounds == 10);
  CHECK(synchronous.end().iterations == 10);
  CHECK(synchronous.end().bytes >= 10 * 4 * (784 * 16 + 16 + 16 * 10 + 10));
  CHECK(synchronous.end().distance == 0);
  const auto& averaging = runOf(runs, "averaging every=4");
  CHECK(averaging.end().rounds == 3);
  CHECK(averaging.end().distance > 0);
  const auto& joined = runOf(runs, "joined");
  CHECK(joined.end().iterations == 10);
  CHECK(joined.end().bytes == 0);
  // The mean of gradients is the gradient of the joined batch, to rounding.
  CHECK(synchronous.end().loss == doctest::Approx(joined.end().loss).epsilon(1e-3));
  if (muster::test::kWithPage)
    CHECK(readFile(directory / "out" / "runs" / "averaging-every=4" / "seed-2.curves.jsonl")
              .starts_with("{\"format\":\"muster-curves/1\",\"group\":\"averaging every=4\"}\n"));
}

TEST_CASE("a comparison that tests with training rows says so") {
  const Directory directory;
  const auto example = succeeded(muster::test::runProgram(
      MUSTER_PROGRAM, {.directory = directory.path(), .arguments = {"example", "rows.csv"}}));
  writeFile(directory / "rows.json", example.out);
  const std::string warning = "Warning: the test rows are the training rows (data.test rows.csv,";
  const auto outcome = succeeded(directory.run({"rows.json", "--set", "data.test=rows.csv", "--set",
                                                "training.epochs=1", "--arm", "averaging", "--seeds", "1"}));
  CHECK(contains(outcome.out, warning));
}

TEST_CASE("a table without test data is divided, and each arm tuned on validation data alone") {
  const Directory directory;
  const auto example = succeeded(muster::test::runProgram(
      MUSTER_PROGRAM, {.directory = directory.path(), .arguments = {"example", "rows.csv"}}));
  writeFile(directory / "rows.json", example.out);
  const Texts arguments{"rows.json",
                        "--set",
                        "training.epochs=3",
                        "--set",
                        "listeners.earlyStopping={\"patience\": 50}",
                        "--set",
                        "data.validationExamples=0",
                        "--arm",
                        "averaging workers=2",
                        "--arm",
                        "plain: workers=1 batch=9",
                        "--tune",
                        "learningRate=0.001,0.1",
                        "--seeds",
                        "1,2,3",
                        "--out",
                        "out"};
  const auto outcome = succeeded(directory.run(arguments));
  CHECK(contains(outcome.out,
                 "The run file has no test and no validation data, so 12 rows each of 80 are held out"));
  CHECK(contains(outcome.out, "56 rows to train with and 12 to test with"));
  CHECK(contains(outcome.out, "Tuned alike: "));
  const auto runs = directory.results();
  REQUIRE(runs.size() == 2 * 2 + 2 * 3);
  for (const auto& run : runs) CHECK((run.on == "validation") == (run.seed == 0));
  CHECK(std::ranges::count(runs, "validation", &RunRecord::on) == 4);
  // The loss on twelve rows differs from that on twelve others.
  const auto chosen = readFile(directory / "out" / "tables" / "tuning.csv");
  CHECK(contains(chosen, "\naveraging workers=2,learningRate=0."));
  // Normalise's statistics are of the training data from the first step on: there is nothing to recompute.
  for (const auto& run : runs) CHECK(run.recomputed.empty());
  CHECK(contains(outcome.out, "The test data have 12 examples: one of them is worth 8.33 points."));
  for (const auto& run : runs)
    if (run.seed > 0)
      CHECK(std::ranges::any_of(run.settings, [](const std::string& value) {
        return value.starts_with("network.updater.learningRate");
      }));
  CHECK(contains(directory.run(arguments).out, "6 of 6 runs finished"));
  CHECK(directory.results().size() == 10);
  auto further = arguments;
  std::ranges::replace(further, std::string("learningRate=0.001,0.1"), std::string("learningRate=0.10,0.01"));
  succeeded(directory.run(further));
  CHECK(std::ranges::count(directory.results(), "validation", &RunRecord::on) == 6);  // two of 0.01 more
  // One value joins those, too, and so does what no arm of this call leaves open.
  std::ranges::replace(further, std::string("learningRate=0.10,0.01"),
                       std::string("network.updater.learningRate=0.010"));
  CHECK(contains(succeeded(directory.run(further)).out, "6 of 6 runs finished"));
  for (auto& word : further)
    if (word == "--tune") word = "--tune=learningRate=0.1,1,1.0";
  std::erase(further, "network.updater.learningRate=0.010");
  CHECK(contains(errorOf(directory.run(further)), "1.0 is given twice"));
  CHECK(contains(readFile(directory / "out" / "tables" / "tuning.csv"), "learningRate=0.01: "));
  CHECK(contains(readFile(directory / "out" / "table.md"), "the best one by the validation data"));

  // As many rows, but the first column has another name; or the last row's class comes first, and the others
  // follow.
  const auto rows = readFile(directory / "rows.csv");
  const auto results = readFile(directory / "out" / "results.jsonl");
  std::string permuted, carried = rows.substr(rows.rfind(',') + 1);
  for (std::size_t at = 0; at < rows.size();) {
    const auto line = rows.substr(at, rows.find('\n', at) - at);
    const auto comma = line.rfind(',');
    permuted +=
        at == 0 ? line + "\n" : line.substr(0, comma + 1) + carried.substr(0, carried.find('\n')) + "\n";
    if (at > 0) carried = line.substr(comma + 1);
    at += line.size() + 1;
  }
  for (const auto& changed : {"new_" + rows, permuted}) {
    writeFile(directory / "rows.csv", changed);
    CHECK(contains(errorOf(directory.run(arguments), 1),
                   "holds a comparison of another run: the data's contents "));
    CHECK(readFile(directory / "out" / "results.jsonl") == results);
  }
}

TEST_CASE("an interrupted comparison continues, seeds and arms join it, and another run file is refused") {
  const Directory directory;
  REQUIRE(directory.run(four("whole")).exit == 0);
  {
    Texts arguments = four();
    arguments.insert(arguments.begin(), "compare");
    Program program(MUSTER_PROGRAM, {.directory = directory.path(), .arguments = arguments});
    REQUIRE(program.awaitText("run 2/8: "));
    program.signal(SIGINT);
    const auto stopped = program.wait();
    CAPTURE(stopped.err);
    CHECK((stopped.exit == 130 || stopped.exit == 0));  // 0: it was faster than the signal
    if (stopped.exit == 130) CHECK(contains(stopped.out, "the same command continues from there\n"));
  }
  const auto before = directory.results();
  CHECK(before.size() >= 2);
  REQUIRE(directory.run(four()).exit == 0);
  const auto runs = directory.results(), expected = directory.results("whole");
  REQUIRE(runs.size() == 8);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    CHECK(runs[i].arm == expected[i].arm);
    CHECK(runs[i].seed == expected[i].seed);
    CHECK(runs[i].end().loss == expected[i].end().loss);
    if (i < before.size()) CHECK(toJson(runs[i]) == toJson(before[i]));  // not trained again
  }
  const auto more = succeeded(
      directory.run({"run.json", "--arm", "gossip", "--seeds", "3", "--out", "out", "--baseline", "joined"}));
  CHECK_FALSE(contains(more.out, "Warning: "));
  CHECK(contains(more.out, "5 arms, 3 seeds: 8 of 15 runs finished"));
  CHECK(directory.results().size() == 15);
  CHECK(contains(readFile(directory / "out" / "table.md"), "| joined | "));

  // The same run and arm in other words: the rate and a default written out, and the strategy's short form.
  std::string written = kDigits;
  const auto replace = [&written](std::string_view what, std::string_view by) {
    REQUIRE(contains(written, std::string(what)));
    written.replace(written.find(what), what.size(), by);
  };
  replace(R"("learningRate": 0.01)", R"("learningRate": {"type": "fixed", "value": 1e-2})");
  replace(R"("version": 1)", R"("version": 1, "clipNorm": 0)");
  replace(R"({"name": "averaging", "every": 1})", "1");
  writeFile(directory / "written.json", written);
  CHECK(contains(directory.run({"written.json", "--out", "out"}).out, "15 of 15 runs finished"));
  CHECK(contains(
      directory.run({"written.json", "--out", "out", "--arm", "gossip: gossip training.workers=2"}).out,
      "15 of 15 runs finished"));
  writeFile(directory / "written.json", "");

  const auto bytes = readFile(directory / "out" / "results.jsonl");
  for (const auto& [set, difference] :
       {std::pair<std::string, std::string>{"data.dropLast=true", "data.dropLast false (now true)"},
        {"data.batch=20", "data.batch 10 (now 20)"},
        {"data.testExamples=50", "data.testExamples 100 (now 50)"}}) {
    const auto refused = directory.run({"run.json", "--set", set, "--out", "out"});
    CHECK(refused.err ==
          fmt::format("muster: out/results.jsonl: holds a comparison of another run: {}; give another "
                      "--out\n",
                      difference));
  }
  CHECK(errorOf(directory.run({"run.json", "--set", "training.epochs=2", "--out", "out"}), 1) ==
        "muster: out/results.jsonl: holds a comparison of another run: training.epochs 1 (now 2); give "
        "another --out\n");
  CHECK(readFile(directory / "out" / "results.jsonl") == bytes);
}

TEST_CASE("a training whose loss is not finite is reported, and the others continue") {
  const Directory directory;
  const auto outcome =
      directory.run({"run.json", "--arm", "averaging", "--arm", "wild: sgd: updater=sgd learningRate=1e30",
                     "--seeds", "1", "--out", "o"});
  CHECK(outcome.exit == 2);  // a second colon is no name
  const auto diverged = succeeded(directory.run({"run.json", "--arm", "averaging", "--arm",
                                                 "wild: learningRate=1e30", "--seeds", "1", "--out", "out"}));
  CHECK(contains(diverged.out, "diverged"));
  CHECK(runOf(directory.results(), "wild").failed());
  // Twenty batches: ten iterations of two workers, and fewer than one of thirty.
  const auto rare = succeeded(directory.run({"run.json", "--arm", "averaging every={10,11}", "--arm",
                                             "many: workers=30", "--seeds", "1", "--out", "rare"}));
  const auto table = readFile(directory / "rare" / "table.md");
  CHECK(contains(table, "than the period: averaging every=11."));
  CHECK(contains(table, "so some train nothing: many."));
  CHECK_FALSE(runOf(directory.results(), "averaging").failed());
}

TEST_CASE("what is said of a table's columns is said once for all trainings") {
  const Directory directory;
  std::string text = "a,kind\n";
  for (int i = 0; i < 80; ++i) text += fmt::format("{}%,{}\n", i % 20, i % 20 < 9 ? "low" : "high");
  writeFile(directory / "rows.csv", text);
  const auto made = succeeded(muster::test::runProgram(
      MUSTER_PROGRAM, {.directory = directory.path(), .arguments = {"example", "rows.csv"}}));
  writeFile(directory / "rows.json", made.out);
  const auto log = succeeded(directory.run({"rows.json", "--set", "training.epochs=1", "--set",
                                            "training.pinThreads=false", "--arm", "averaging", "--seeds",
                                            "1,2", "--out", "o"}))
                       .err;
  const auto said = log.find("\"1%\" is read as the number 1");
  CHECK_MESSAGE(said != log.npos, log);
  CHECK_MESSAGE(log.find("is read as the number", said + 30) == log.npos, log);
}

TEST_CASE("a training that diverged with finite numbers is marked as train refuses it, and is last") {
  const Directory directory;
  const Texts wild{"run.json", "--arm",     "wild: averaging learningRate=10",
                   "--arm",    "averaging", "--seeds",
                   "1",        "--out",     "out"};
  const auto outcome = succeeded(directory.run(wild));
  const auto run = runOf(directory.results(), "wild");
  CHECK_MESSAGE(contains(run.failure, "the training diverged: its loss went from "), run.failure);
  CHECK(contains(outcome.out, "wild diverged in each run"));
  CHECK(outcome.out.find("\naveraging") < outcome.out.find("\nwild"));
}

TEST_CASE("what the run file asks to compare is the default of the options") {
  const Directory directory;
  std::string text = kDigits;
  text.insert(
      1,
      R"("compare": {"arms": ["averaging", "joined"], "seeds": [4, 5], "testEvery": 50, "baseline": "joined"},)");
  writeFile(directory / "grid.json", text);
  const auto outcome = succeeded(directory.run({"grid.json", "--seeds", "7", "--out", "out"}));
  const auto runs = directory.results();
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].seed == 7);
  CHECK(runs[0].points.size() == 4);
  CHECK(contains(outcome.out, "One seed: "));
  text.replace(text.find("testEvery"), 9, "testevery");
  writeFile(directory / "grid.json", text);
  CHECK(contains(directory.run({"grid.json"}).err, "compare.testevery: "));
  // muster train leaves it alone.
  CHECK(muster::test::runProgram(MUSTER_PROGRAM,
                                 {.directory = directory.path(), .arguments = {"plan", "grid.json"}})
            .exit == 0);
}

TEST_CASE("what does not fit is refused before a training, by what gave it") {
  const Directory directory;
  std::string text = kDigits;
  text.insert(1, R"("compare": {"arms": ["averaging"], "baseline": "joined", "tune": ["learningRate"]},)");
  writeFile(directory / "grid.json", text);
  CHECK(contains(directory.run({"grid.json"}).err, "grid.json: compare.tune learningRate: expected a field"));
  CHECK(contains(directory.run({"grid.json", "--tune", "learningRate=1,2"}).err,
                 "grid.json: compare.baseline joined: there is no such arm"));
  const auto large = directory.run(
      {"run.json", "--arm", "averaging", "--set", "data.dropLast=true", "--set", "data.batch=300"});
  CHECK(large.out.empty());
  CHECK(contains(large.err, "the arm \"averaging\": data.dropLast leaves out a batch that is not full"));

  const auto example = muster::test::runProgram(
      MUSTER_PROGRAM,
      {.directory = directory.path(), .arguments = {"example", "rows.csv", "--label", "b", "--regression"}});
  REQUIRE(example.exit == 0);
  writeFile(directory / "numbers.json", example.out);
  const auto refused = directory.run({"numbers.json", "--arm", "averaging", "--target", "5"});
  CHECK(refused.exit == 2);
  CHECK(refused.out.empty());
  CHECK(contains(refused.err, "--target must be at most 1: it is R2; got 5"));
}

TEST_CASE("results of another run or version are refused by what differs") {
  const Directory directory;
  REQUIRE(
      directory.run({"run.json", "--arm", "wide: network.layers[1].units=32", "--seeds", "1", "--out", "out"})
          .exit == 0);
  // The arm of the results does not fit this run: mlp has no layers[1].
  const auto other = directory.run(
      {"run.json", "--set", "network=\"mlp\"", "--arm", "wide: batch=5", "--seeds", "1", "--out", "out"});
  CHECK(contains(other.err, "out/results.jsonl: holds a comparison of another run: network"));
  auto results = readFile(directory / "out" / "results.jsonl");
  const std::string format = "\"format\": 2";
  REQUIRE(contains(results, format));
  results.replace(results.find(format), format.size(), "\"format\": 1");
  writeFile(directory / "out" / "results.jsonl", results);
  const auto earlier = directory.run({"run.json", "--out", "out"});
  CHECK(earlier.exit == 1);
  CHECK(contains(earlier.err, "it has format 1, of another version, and this one reads 2"));
}

TEST_CASE("invalid options exit with 2 and a sentence, before anything is written") {
  const Directory directory;
  const std::vector<std::pair<Texts, std::string>> cases{
      {{}, "there is no arm to compare: give some, as in --arm averaging"},
      {{"--frobnicate"}, "there is no option --frobnicate; --help lists the options"},
      {{"--grid", "readme"},
       "--grid is not an option: the run file says what is trained, and --arm what differs"},
      {{"--workers=4"}, "--workers is not an option"},
      {{"--epochs", "5"},
       "--epochs is not an option: --set training.epochs=N sets it for all arms, and --arm what differs"},
      {{"--seed", "5"}, "there is no option --seed; the nearest is --seeds; --help lists the options\n"},
      {{"--page"}, "there is no option --page; "},
      {{"--width", "8"}, "--width is not an option: the run file says what is trained, and --arm what "},
      {{"--model", "mlp"}, "--model is not an option: the run file says what is trained, and --arm what "},
      {{"--arm", "dilocco"}, "there is no strategy \"dilocco\"; the nearest is diloco"},
      {{"--arm", "averaging", "--arm", "averaging"}, "there are two arms called \"averaging\""},
      {{"--arm", "averaging workers=0"},
       "--arm \"averaging workers=0\": training.workers must be between 1 and 1024, got 0"},
      {{"--arm", "averaging", "--seeds", "1,1"}, "--seeds: 1 is given twice"},
      {{"--arm", "averaging", "--seeds", "0"}, "--seeds: each must be between 1 and"},
      {{"--arm", "averaging", "--seeds", "1,a"}, "--seeds 1,a: expected whole numbers, as in 1,2,3"},
      {{"--arm", "averaging", "--target", "100"}, "--target must be below 100"},
      {{"--arm", "averaging", "--target", "0.97"},
       "--target must be above 1 and below 100: an accuracy in percent, as in 97; got 0.97"},
      {{"--set", "training.workers=0"}, "--set training.workers=0: training.workers must be between 1 and "},
      {{"--arm", "averaging", "--test-every", "0"},
       "--test-every must be a whole number and at least 1, got 0"},
      {{"--arm", "averaging", "--tune", "learningRate"},
       "--tune learningRate: expected a field and its values"},
      {{"--arm", "averaging", "--link", "10,50us"}, "--link 10,50us: the bandwidth \"10\" needs a unit"},
      {{"--arm", "averaging", "--set", "training.nodes=gloo"}, "training.nodes: gloo"},
      {{"--arm", "averaging", "--out", ""}, "--out"}};
  for (const auto& [more, problem] : cases) {
    CAPTURE(problem);
    Texts arguments{"run.json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto refused = errorOf(directory.run(arguments));
    CHECK(refused.starts_with("muster: "));
    CHECK(std::ranges::count(refused, '\n') == 1);
    CHECK(contains(refused, problem));
  }
  CHECK(directory.names() == std::set<std::string>{"rows.csv", "run.json"});
  CHECK(contains(errorOf(directory.run({"run.json", "--arm", "averaging", "--out", "."}), 1),
                 "so it is not a comparison's; give another --out"));
}

}  // namespace
}  // namespace comparing
