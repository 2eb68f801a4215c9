#include <csignal>

#include "muster/core/comparison/results_file.h"
#include "tests/examples/sandbox.h"

// muster compare, as a user runs it.

namespace comparing {
namespace {

using muster::ResultsFile;
using muster::RunRecord;
using muster::test::kWithPage;

/// A small network on 200 generated digits; two workers, unpinned, because other tests run at the same time.
constexpr const char* kDigits = R"({"format": "muster-run/1",
  "data": {"type": "generated", "trainExamples": 200, "testExamples": 100, "batch": 10},
  "network": {"format": "muster.MultiLayerConfiguration", "version": 1, "l2": 0.0005,
              "updater": {"type": "nesterovs", "learningRate": 0.01, "momentum": 0.9},
              "layers": [{"type": "flatten"}, {"type": "dense", "units": 16, "activation": "relu"},
                         {"type": "output", "classes": 10}]},
  "training": {"workers": 2, "strategy": {"name": "averaging", "every": 1}, "pinThreads": false}})";

/// With the section "compare" before it.
std::string digitsWith(const std::string& section) {
  return "{\"compare\": " + section + ", " + std::string(kDigits).substr(1);
}

/// A sandbox with run.json.
struct Comparing : muster::test::Sandbox {
  Comparing() { write("run.json", kDigits); }
  /// Writes rows.csv and rows.json, the example of its run file.
  void writeRows(const std::string& table, const std::string& options = "") const {
    write("rows.csv", table);
    write("rows.json", succeeds("example rows.csv " + options).out);
  }
  std::vector<RunRecord> results(const std::string& out = "out") const {
    return ResultsFile(directory / out / "results.jsonl").runs();
  }
};

/// Two classes of rows, mostly told apart by a + b; 80 rows without a test set.
/// @param unit  after each number of a.
std::string rows(const char* unit = "") {
  std::string text = "a,b,kind\n";
  for (int i = 0; i < 80; ++i) {
    const double a = (i * 37 % 80) / 80., b = (i * 53 % 80) / 80.;
    text += fmt::format("{:.3f}{},{:.3f},{}\n", a, unit, b, a + b > 0.95 ? "high" : "low");
  }
  return text;
}

/// Four arms with two seeds.
const std::string kFour =
    "compare run.json --arm 'averaging every={1,4}' --arm synchronous --arm joined --seeds 1,2 "
    "--test-every 100 --out ";

const RunRecord& runOf(const std::vector<RunRecord>& runs, const std::string& arm) {
  return *std::ranges::find(runs, arm, &RunRecord::arm);
}

TEST_CASE(
    "arms are trained on equal samples, compared and reported; an interrupted comparison continues, and "
    "grows") {
  const Comparing muster;
  const auto outcome = muster.succeeds(kFour + "out --target 10 --link 1Gbit,1ms");
  for (const char* part :
       {"200 images to train with and 100 to test with",
        "4 arms, 2 seeds: 0 of 8 runs finished in out/results.jsonl\n", "Nothing was tuned: ",
        "--tune learningRate=0.003,0.01,0.03",  // about the file's own
        "samples to 10 %", "projected on a link of 1 Gbit/s, 1 ms"})
    CHECK_CONTAINS(outcome.out, part);
  CHECK_CONTAINS(outcome.err, "run 8/8: ");
  auto files = muster::test::namesIn(muster.directory / "out");
  if (kWithPage) CHECK(files.erase("runs") == 1);
  CHECK(files ==
        std::set<std::string>{".lock", "plots", "report.html", "results.jsonl", "table.md", "tables"});
  for (const char* file : {"plots/differences.svg", "plots/differences.csv", "plots/score-by-samples.svg",
                           "plots/projected-speed.csv", "tables/arms.csv", "tables/link.csv"})
    CHECK_MESSAGE(muster.has(std::string("out/") + file), file);
  const auto runs = muster.results();
  REQUIRE(runs.size() == 8);
  for (const auto& run : runs) {
    CHECK(run.end().samples == 200);
    CHECK(run.points.size() == 2);
    CHECK(run.computeSeconds > 0);
  }
  // Twenty batches: ten rounds of two, or a merge every four iterations and at the end.
  const auto &synchronous = runOf(runs, "synchronous").end(),
             &averaging = runOf(runs, "averaging every=4").end(), &joined = runOf(runs, "joined").end();
  CHECK(synchronous.rounds == 10);
  CHECK(averaging.rounds == 3);
  CHECK(averaging.distance > 0);
  CHECK(joined.iterations == 10);
  CHECK(joined.bytes == 0);
  // The mean of gradients is the gradient of the joined batch, to rounding.
  CHECK(synchronous.loss == doctest::Approx(joined.loss).epsilon(1e-3));
  if (kWithPage)
    CHECK(muster.read("out/runs/averaging-every=4/seed-2.curves.jsonl")
              .starts_with("{\"format\":\"muster-curves/1\",\"group\":\"averaging every=4\"}\n"));

  {
    auto program = muster.start(kFour + "parts");
    REQUIRE(program.awaitText("run 2/8: "));
    program.signal(SIGINT);
    const auto stopped = program.wait();
    CAPTURE(stopped.err);
    CHECK((stopped.exit == 130 || stopped.exit == 0));  // 0: it was faster than the signal
    if (stopped.exit == 130) CHECK_CONTAINS(stopped.out, "the same command continues from there\n");
  }
  const auto before = muster.results("parts");
  CHECK(before.size() >= 2);
  muster.succeeds(kFour + "parts");
  const auto parts = muster.results("parts");
  REQUIRE(parts.size() == 8);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    CHECK(parts[i].arm == runs[i].arm);
    CHECK(parts[i].seed == runs[i].seed);
    CHECK(parts[i].end().loss == runs[i].end().loss);
    if (i < before.size()) CHECK(toJson(parts[i]) == toJson(before[i]));  // not trained again
  }

  // Seeds and arms join it.
  const auto more = muster.succeeds(
      "compare run.json --arm 'wide: network.layers[1].units=32' --seeds 3 --out out --baseline joined");
  CHECK_LACKS(more.out, "Warning: ");
  CHECK_CONTAINS(more.out, "5 arms, 3 seeds: 8 of 15 runs finished");
  CHECK(muster.results().size() == 15);
  CHECK_CONTAINS(muster.read("out/table.md"), "| joined | ");

  // The same run and arm in other words: the rate and a default written out, and the strategy's short form.
  const auto same = muster.succeeds(
      "compare run.json --set 'network.updater.learningRate={\"type\": \"fixed\", \"value\": 1e-2}' --set "
      "network.clipNorm=0 --set training.strategy=1 --arm 'wide: training.workers=2 "
      "network.layers[1].units=32' --out out");
  CHECK_CONTAINS(same.out, "15 of 15 runs finished");

  const auto bytes = muster.read("out/results.jsonl");
  const auto refused = [&](const std::string& set, const std::string& difference) {
    muster.refuses("compare run.json --out out --set " + set,
                   "out/results.jsonl: holds a comparison of another run: " + difference, 1);
  };
  refused("data.batch=20", "data.batch 10 (now 20); give another --out\n");
  refused("network='\"mlp\"'", "network");  // the arm "wide" does not fit: mlp has no layers[1]
  CHECK(muster.read("out/results.jsonl") == bytes);
}

TEST_CASE("a table without test data is divided, and each arm tuned on validation data alone") {
  const Comparing muster;
  muster.writeRows(rows("%"));
  const std::string compare =
      "compare rows.json --set training.epochs=3 --set 'listeners.earlyStopping={\"patience\": 50}' --set "
      "data.validationExamples=0 --arm 'averaging workers=2' --arm 'plain: workers=1 batch=9' --seeds 1,2,3 "
      "--out out --tune learningRate=";
  const auto [exit, out, err] = muster.succeeds(compare + "0.001,0.1");
  for (const char* part :
       {"The run file has no test and no validation data, so 12 rows each of 80 are held out",
        "56 rows to train with and 12 to test with",
        "Tuned alike: ", "The test data have 12 examples: one of them is worth 8.33 points."})
    CHECK_CONTAINS(out, part);
  // It is said once for all trainings.
  const std::string read = "is read as the number";
  CHECK_CONTAINS(err, read);
  CHECK(err.find(read) == err.rfind(read));
  const auto runs = muster.results();
  REQUIRE(runs.size() == 2 * 2 + 2 * 3);
  for (const auto& run : runs) {
    CHECK((run.on == "validation") == (run.seed == 0));
    // Normalise's statistics are of the training data from the first step on: there is nothing to recompute.
    CHECK(run.recomputed.empty());
    const bool tuned = std::ranges::any_of(run.settings, [](const std::string& value) {
      return value.starts_with("network.updater.learningRate");
    });
    CHECK((tuned || run.seed == 0));
  }
  CHECK_CONTAINS(muster.read("out/tables/tuning.csv"), "\naveraging workers=2,learningRate=0.");
  CHECK_CONTAINS(muster.read("out/table.md"), "the best one by the validation data");

  CHECK_CONTAINS(muster
                     .succeeds("compare rows.json --set data.test=rows.csv --set training.epochs=1 --arm "
                               "averaging --seeds 1 --out tested")
                     .out,
                 "Warning: the test rows are the training rows (data.test rows.csv,");

  muster.succeeds(compare + "0.10,0.01");
  CHECK(std::ranges::count(muster.results(), "validation", &RunRecord::on) == 6);  // two of 0.01 more
  CHECK_CONTAINS(muster.read("out/tables/tuning.csv"), "learningRate=0.01: ");
  CHECK_CONTAINS(muster.succeeds(compare + "0.010").out, "6 of 6 runs finished");  // one value joins those

  const auto results = muster.read("out/results.jsonl");
  muster.write("rows.csv", "new_" + muster.read("rows.csv"));  // the first column has another name
  CHECK_CONTAINS(muster::test::errorOf(muster(compare + "0.001,0.1"), 1),
                 "holds a comparison of another run: the data's contents ");
  CHECK(muster.read("out/results.jsonl") == results);
}

TEST_CASE("a training that diverged, with finite numbers or without, is reported last, and others continue") {
  const Comparing muster;
  const auto outcome = muster.succeeds(
      "compare run.json --arm 'wild: learningRate=1e30' --arm 'steep: averaging learningRate=10' --arm "
      "averaging --seeds 1 --out out");
  CHECK_CONTAINS(outcome.out, "2 arms diverged in each run");
  CHECK(outcome.out.find("\naveraging") < outcome.out.find("\nwild"));
  const auto runs = muster.results();
  CHECK(runOf(runs, "wild").failed());
  // As train refuses it.
  CHECK_CONTAINS(runOf(runs, "steep").failure, "the training diverged: its loss went from ");
  CHECK_FALSE(runOf(runs, "averaging").failed());
}

TEST_CASE("what the run file asks to compare is the default of the options") {
  const Comparing muster;
  muster.write("grid.json", digitsWith(R"({"arms": ["averaging", "joined"], "seeds": [4, 5], "testEvery": 50,
                                           "baseline": "joined"})"));
  const auto outcome = muster.succeeds("compare grid.json --seeds 7 --out out");
  CHECK_CONTAINS(outcome.out, "One seed: ");
  const auto runs = muster.results();
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].seed == 7);
  CHECK(runs[0].points.size() == 4);

  muster.write("grid.json", digitsWith(R"({"testevery": 50})"));
  muster.refuses("compare grid.json", "grid.json: compare.testevery: ");
  for (const std::string set : {"compare.testEvery=50", "compare=null"})
    muster.refuses("compare run.json --set " + set,
                   "--set " + set + ": --set is for what is trained; --arm, ");
  for (const std::string command : {"plan", "train"})
    muster.refuses(command + " grid.json",
                   "grid.json: compare.testevery: there is no such field; the nearest");
  muster.write("grid.json", digitsWith(R"({"arms": ["averaging"], "baseline": "joined",
                                           "tune": ["learningRate"]})"));
  muster.refuses("compare grid.json", "grid.json: compare.tune learningRate: expected a field");
  muster.refuses("compare grid.json --tune learningRate=1,2",
                 "grid.json: compare.baseline joined: there is no such arm");
}

TEST_CASE("invalid options exit with 2 and a sentence, before anything is written") {
  const Comparing muster;
  muster.writeRows(rows(), "--label b --regression");
  const auto begin = muster.directory.names();
  const std::string none = " is not an option: ",
                    names = "the run file says what is trained, and --arm what differs",
                    train = "--arm averaging ";
  const std::pair<std::string, std::string> lines[] = {
      {"", "there is no arm to compare: give some, as in --arm averaging"},
      {"--frobnicate", "there is no option --frobnicate; --help lists the options"},
      {"--grid readme", "--grid" + none + names},
      {"--workers=4", "--workers" + none},
      {"--epochs 5",
       "--epochs" + none + "--set training.epochs=N sets it for all arms, and --arm what differs"},
      {"--seed 5", "there is no option --seed; the nearest is --seeds; --help lists the options\n"},
      {train + "--set training.nodes=gloo", "training.nodes: gloo"},
      {train + train, "--arm: there are two arms called \"averaging\""},
      {train + "--seeds 1,1", "--seeds: 1 is given twice"},
      {train + "--seeds 0", "--seeds: each must be between 1 and"},
      {train + "--seeds 1,a", "--seeds 1,a: expected whole numbers, as in 1,2,3"},
      {train + "--target 100", "--target must be below 100"},
      {train + "--target 0.97",
       "--target must be above 1 and below 100: an accuracy in percent, as in 97; got 0.97"},
      {train + "--test-every 0", "--test-every must be a whole number and at least 1, got 0"},
      {train + "--link 10,50us", "--link 10,50us: the bandwidth \"10\" needs a unit"}};
  for (const auto& [options, text] : lines) muster.refuses("compare run.json " + options, "muster: " + text);
  muster.refuses("compare rows.json --target 5 " + train, "--target must be at most 1: it is R2; got 5");
  muster.refuses("compare run.json --out . " + train, "so it is not a comparison's; give another --out", 1);
  CHECK(muster.directory.names() == begin);
  muster.refuses("compare run.json --set data.dropLast=true --set data.batch=300 " + train,
                 "the arm \"averaging\": data.dropLast leaves out a batch that is not full");
}

}  // namespace
}  // namespace comparing
