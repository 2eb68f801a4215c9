// What is written of a training that has ended.
#include "muster/parallel/run/results.h"

#include <boost/json.hpp>

#include "muster/core/io/json_value.h"
#include "muster/parallel/run/suggested_run.h"
#include "tests/support/test.h"

namespace muster {
namespace {

namespace json = boost::json;

/// Two workers, merged every second iteration, on 200 examples in batches of 16.
RunFile mixturesIn(const test::TemporaryDirectory& directory) {
  return RunFile::parse(fmt::format(
      R"({{"format": "muster-run/1",
      "data": {{"type": "mixtures", "trainExamples": 200, "testExamples": 60, "batch": 16}},
      "network": {{"name": "mlp", "hidden": 8, "updater": "sgd"}},
      "training": {{"workers": 2, "strategy": 2, "epochs": 3, "devices": "cpu", "model": "{}"}},
      "listeners": {{"progress": false}}}})",
      (directory / "model.safetensors").string()));
}

json::value resultsOf(const RunSession& session, const RunScores& scores) {
  return parseJson(resultsText(session, scores, 2.5));
}

TEST_CASE("results count the examples, epochs and merges of a training, and have its scores") {
  const test::TemporaryDirectory directory;
  RunSession session(mixturesIn(directory));
  CHECK(costLine(session).empty());
  session.train();
  const auto scores = session.evaluate();
  const auto results = resultsOf(session, scores);
  json::object some;
  for (const char* name : {"program", "trainingExamples", "testExamples", "firstEpoch", "epochsFinished",
                           "interrupted", "resumedFrom", "secondsInAll"})
    some[name] = results.at(name);
  CHECK(json::serialize(some) ==
        R"({"program":"muster","trainingExamples":200,"testExamples":60,"firstEpoch":1,"epochsFinished":3,)"
        R"("interrupted":false,"resumedFrom":"","secondsInAll":2.5E0})");
  CHECK(results.at_pointer("/configuration/training/workers") == 2);
  CHECK(results.at("scoreByEpoch").as_array().size() == 3);
  const double seconds = results.at("seconds").as_double();
  CHECK(seconds > 0);
  CHECK(results.at("samplesPerSecond").as_double() == doctest::Approx(3 * 200 / seconds));
  double shares = 0;
  for (const char* share : {"computeShare", "mergeShare", "dataWaitShare", "barrierWaitShare"}) {
    CHECK(results.at(share).as_double() >= 0);
    shares += results.at(share).as_double();
  }
  CHECK(shares == doctest::Approx(1));
  CHECK(results.at("peakMemoryBytes").as_int64() > 10'000'000);
  CHECK(results.at("merges") == 12);  // 13 batches: 7 iterations of worker 0 in an epoch, so 4 rounds
  // Of float32: weights and biases of 128 inputs, 8 hidden units and 4 classes; each begins at a multiple of
  // 16 numbers, so the 8 and the 4 biases take 16.
  CHECK(results.at("mergedBytes") == 12 * 4 * (128 * 8 + 16 + 8 * 4 + 16));
  CHECK(results.at("testAccuracy").as_double() == scores.test->accuracy());
  CHECK(results.at("testLoss").as_double() == scores.test->loss());
  CHECK(results.at("f1").as_double() == scores.test->f1());
  CHECK_FALSE(results.as_object().contains("validationAccuracy"));
  const auto& workers = results.at("workers").as_array();
  REQUIRE(workers.size() == 2);
  for (const auto& [worker, batches, examples] : {std::tuple(0, 7, 6 * 16 + 8), {1, 6, 6 * 16}}) {
    const auto& one = workers[static_cast<std::size_t>(worker)];
    CHECK(one.at("batches") == 3 * batches);
    CHECK(one.at("examples") == 3 * examples);
    CHECK(one.at("device") == "cpu");
  }
  CHECK(costLine(session).starts_with("training: 3 epochs in "));
}

/// The names in the table of examples/docs/results.md that lists the fields of results, also in its texts.
std::set<std::string> namesInPage(bool firstColumn) {
  const auto page = test::readFile(MUSTER_RESULTS_PAGE);
  const auto at = page.find("\n| `program` |");
  REQUIRE(at != std::string::npos);
  std::set<std::string> names;
  for (auto line : test::linesOf(page.substr(at + 1, page.find("\n\n", at) - at))) {
    if (firstColumn) line = line.substr(0, line.find(" |", 1));
    for (auto open = line.find('`'); open != std::string::npos;) {
      const auto close = line.find('`', open + 1);
      names.insert(line.substr(open + 1, close - open - 1));
      open = line.find('`', close + 1);
    }
  }
  return names;
}

TEST_CASE("the page of results lists the fields that results have") {
  const test::TemporaryDirectory directory;
  std::string table = "x,kind,size\n";
  for (int i = 0; i < 60; ++i) table += fmt::format("{},{},{}\n", i % 7, i % 3 == 0 ? "a" : "b", 0.5 * i * i);
  test::writeFile(directory / "rows.csv", table);
  std::set<std::string> written, inside;
  for (const bool tested : {false, true})
    for (const bool regression : {false, true}) {
      auto run = suggestedRun({.type = "csv",
                               .train = (directory / "rows.csv").string(),
                               .label = regression ? "size" : "kind",
                               .regression = regression});
      if (tested) {
        run.data.test = run.data.train;
        run.data.validationExamples = 0;
        run.listeners.earlyStopping.reset();
      }
      run.training.model = (directory / "m.safetensors").string();
      run.training.devices = "cpu";
      run.training.epochs = 2;
      run.listeners.testEvery = 1;
      run.listeners.progress = false;
      RunSession session(RunFile::parse(run.toJson()));
      session.train();
      const auto results = resultsOf(session, session.evaluate());
      for (const auto& [name, value] : results.as_object()) {
        written.insert(name);
        const auto* const list = value.if_array();
        if (list && !list->empty() && list->front().is_object())
          for (const auto& field : list->front().get_object()) inside.insert(field.key());
      }
    }
  const auto listed = namesInPage(/*firstColumn=*/true), named = namesInPage(/*firstColumn=*/false);
  for (const auto& name : written) CHECK_MESSAGE(listed.contains(name), name);
  for (const auto& name : inside) CHECK_MESSAGE(named.contains(name), name);
  for (const auto& name : listed)  // but those of several processes and of several sigmoid outputs
    if (name != "bytesSent" && !name.ends_with("Auc")) CHECK_MESSAGE(written.contains(name), name);
}

TEST_CASE("results of numbers to predict have the errors of these") {
  const test::TemporaryDirectory directory;
  auto run = mixturesIn(directory);
  run.network = R"("mlp")";
  run.data = {.type = "csv",
              .train = (directory / "rows.csv").string(),
              .test = (directory / "test.csv").string(),
              .regression = true,
              .batch = 8};
  for (const auto& [file, count, factor] : {std::tuple(run.data.train, 40, 0.37), {run.data.test, 10, 0.5}}) {
    std::string rows = "size,weight\n";
    for (int i = 0; i < count; ++i) rows += fmt::format("{},{}\n", factor * i * i, 3 * i + 1);
    test::writeFile(file, rows);
  }
  RunSession session(run);
  session.train();
  const auto scores = session.evaluate();
  const auto results = resultsOf(session, scores);
  const auto& errors = scores.test->regression();  // in the unit of the labels: table_model_test
  CHECK(results.at("testMae").as_double() == errors.meanAbsoluteError(0));
  CHECK(results.at("testRmse").as_double() == errors.rootMeanSquaredError(0));
  CHECK(results.at("testR2").as_double() == errors.r2(0));
  CHECK_FALSE(results.as_object().contains("testAccuracy"));
}

}  // namespace
}  // namespace muster
