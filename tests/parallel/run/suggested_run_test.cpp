#include "muster/parallel/run/suggested_run.h"

#include <boost/json/value.hpp>

#include "muster/core/io/json_value.h"
#include "muster/datasets/prediction_csv.h"
#include "muster/parallel/run/detail/watching.h"
#include "muster/parallel/run/run_session.h"
#include "tests/support/log_lines.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/texts.h"
#include "tests/support/thrown.h"

using namespace muster;

TEST_CASE("the run that is suggested for a table learns it, and its predictions are CSV") {
  const test::TemporaryDirectory directory;
  std::string rows = "id,size,kind\n";  // large ones are b
  for (int i = 0; i < 100; ++i) {
    const double size = (i * 37 % 100) * 1.5;
    rows += fmt::format("x{},{},{}\n", i, size, size < 75 ? "a" : "\"b,c\"");
  }
  test::writeFile(directory / "rows.csv", rows);
  RunFile run = suggestedRun({.type = "csv", .train = (directory / "rows.csv").string(), .leaveOut = {"id"}});
  CHECK(run.data.validationExamples == 15);  // three rows in twenty
  CHECK(run.data.batch == 5);                // 85 rows to train with, a sixteenth of them
  const auto network = parseJson(run.network);
  CHECK(network.at("l2").to_number<double>() == doctest::Approx(1.0 / 85));
  CHECK(network.at_pointer("/updater/learningRate/value").to_number<double>() == 0.001);
  CHECK(run.training.epochs == 800);  // 80000 steps of 17 would be 4705
  REQUIRE(run.listeners.earlyStopping.has_value());
  CHECK(run.listeners.earlyStopping->patience == 90);
  run.training.model = (directory / "model.safetensors").string();
  run.training.epochs = 100;
  run.listeners = {.progress = false};
  RunSession session(RunFile::parse(run.toJson()));
  session.train();
  CHECK(session.evaluate().validation->accuracy() > 0.8);

  auto model = TableModel::load(directory / "model.safetensors");
  test::writeFile(directory / "new.csv", "size,id\n1.5,u\n148.5,\"v,w\"\n");
  const auto text = predictionsCsv(model, readTable(directory / "new.csv"), {"id"});
  CHECK(text.starts_with("id,prediction,probability,probability of a,\"probability of b,c\"\nu,a,"));
  CHECK(text.find("\n\"v,w\",\"b,c\",") != std::string::npos);
}

TEST_CASE("the model of a suggested run is named after the data, so that another run does not replace it") {
  const test::TemporaryDirectory directory;
  const auto modelFor = [&](const char* file) {
    test::writeFile(directory / file, "size,kind\n1.5,a\n2.5,b\n4.5,a\n");
    return suggestedRun({.type = "csv", .train = (directory / file).string()}).training.model;
  };
  CHECK(modelFor("a.csv") == "a.safetensors");
  CHECK(modelFor("b.c.csv") == "b.c.safetensors");
  CHECK(modelFor("-a.csv") == RunTraining().model);  // this would be an option
}

TEST_CASE("a suggested run may stop by another score, whose mode follows") {
  const test::TemporaryDirectory directory;
  std::string rows = "size,kind\n";
  for (int i = 0; i < 60; ++i) rows += fmt::format("{},{}\n", 0.37 * i * i, i % 3 == 0 ? "a" : "b");
  test::writeFile(directory / "rows.csv", rows);
  const RunFile run = suggestedRun({.type = "csv", .train = (directory / "rows.csv").string()});
  const std::vector<std::string> sets = {"listeners.earlyStopping.monitor=accuracy"};
  CHECK_NOTHROW(prepareRun(RunFile::parse(run.toJson(), sets)));
}

TEST_CASE("a run is suggested for few rows, too, but not for one class or one example") {
  const test::TemporaryDirectory directory;
  const auto suggested = [&](const std::string& rows, bool regression = false) {
    test::writeFile(directory / "rows.csv", rows);
    return suggestedRun(
        {.type = "csv", .train = (directory / "rows.csv").string(), .regression = regression});
  };
  for (const int rows : {2, 3, 5, 9, 33}) {
    CAPTURE(rows);
    std::string text = "a,b,kind\n";
    for (int i = 0; i < rows; ++i) text += i % 2 == 0 ? "1,-1,cat\n" : "-1,1,dog\n";
    RunFile run = suggested(text);
    run.training.model = (directory / "model.safetensors").string();
    run.training.epochs = 1;
    run.listeners.progress = false;
    run.listeners.testEvery = 0;
    const test::LogLines log;
    RunSession session(RunFile::parse(run.toJson()));
    session.train();
    CHECK(session.saved());
    CHECK(log.all().empty());
  }
  CHECK_CONTAINS(test::thrown<Error>([&] { suggested("a,kind\n1,cat\n2,cat\n"); }),
                 "rows.csv: has a single class");
  CHECK_CONTAINS(test::thrown<Error>([&] { suggested("a,y\n1,2\n", true); }), "rows.csv: has one example");
}

TEST_CASE("a run is suggested for tables and pictures alone") {
  CHECK_REFUSED(suggestedRun({.type = "mnist"}),
                "a run is suggested for a table or a folder of pictures, not for data of type mnist");
}

TEST_CASE("listeners without examples to look at are named together, with what turns them off") {
  const test::TemporaryDirectory directory;
  std::string rows = "size,kind\n";
  for (int i = 0; i < 60; ++i) rows += fmt::format("{},{}\n", 0.37 * i * i, i % 3 == 0 ? "a" : "b");
  test::writeFile(directory / "rows.csv", rows);
  RunFile run = suggestedRun({.type = "csv", .train = (directory / "rows.csv").string()});
  run.data.validationExamples = 0;
  CHECK_REFUSED(
      prepareRun(run),
      "listeners.testEvery needs data to test with: data.validationExamples, or a test set; so does "
      "listeners.earlyStopping; without them: listeners.testEvery=0 listeners.earlyStopping=null");
  run.listeners = {.report = (directory / "report").string()};
  if (detail::pagesBuilt())
    CHECK_REFUSED(prepareRun(run), "listeners.report: needs data to test with, or data.validationExamples");
}
