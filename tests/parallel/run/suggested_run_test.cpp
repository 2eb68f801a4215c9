#include "muster/parallel/run/suggested_run.h"

#include <boost/json/value.hpp>

#include "muster/core/io/json_value.h"
#include "muster/parallel/run/detail/watching.h"
#include "muster/parallel/run/run_session.h"
#include "tests/support/log_lines.h"
#include "tests/support/test.h"

using namespace muster;

namespace {

/// A table in a directory of its own.
struct Rows : test::TemporaryDirectory {
  explicit Rows(const std::string& text) { test::writeFile(file, text); }
  const std::string file = (path() / "rows.csv").string();
};

/// Sixty rows of two classes.
std::string sixty() {
  std::string rows = "size,kind\n";
  for (int i = 0; i < 60; ++i) rows += fmt::format("{},{}\n", 0.37 * i * i, i % 3 == 0 ? "a" : "b");
  return rows;
}

}  // namespace

TEST_CASE("a run is suggested by the rows of a table; its model is named after the data") {
  std::string text = "id,size,kind\n";
  for (int i = 0; i < 100; ++i) text += fmt::format("x{},{},{}\n", i, i * 1.5, i < 50 ? "a" : "\"b,c\"");
  const Rows rows(text);
  const RunFile run = suggestedRun({.type = "csv", .train = rows.file, .leaveOut = {"id"}});
  CHECK(run.data.validationExamples == 15);  // three rows in twenty
  CHECK(run.data.batch == 5);                // 85 rows to train with, a sixteenth of them
  const auto network = parseJson(run.network);
  CHECK(network.at("l2").to_number<double>() == doctest::Approx(1.0 / 85));
  CHECK(network.at_pointer("/updater/learningRate/value").to_number<double>() == 0.001);
  CHECK(run.training.epochs == 800);  // 80000 steps of 17 would be 4705
  REQUIRE(run.listeners.earlyStopping.has_value());
  CHECK(run.listeners.earlyStopping->patience == 90);
  for (const auto& [file, model] : {std::pair<const char*, std::string>{"a.csv", "a.safetensors"},
                                    {"b.c.csv", "b.c.safetensors"},
                                    {"-a.csv", RunTraining().model}}) {  // this would be an option
    test::writeFile(rows / file, text);
    CHECK(suggestedRun({.type = "csv", .train = (rows / file).string()}).training.model == model);
  }
}

TEST_CASE("a suggested run may stop by another score, whose mode follows, if it has data to look at") {
  const Rows rows(sixty());
  RunFile run = suggestedRun({.type = "csv", .train = rows.file});
  const std::vector<std::string> sets = {"listeners.earlyStopping.monitor=accuracy"};
  CHECK_NOTHROW(prepareRun(RunFile::parse(run.toJson(), sets)));
  run.data.validationExamples = 0;
  CHECK_CONTAINS(test::thrown<InvalidArgument>([&] { prepareRun(run); }),
                 "without them: listeners.testEvery=0 listeners.earlyStopping=null");
  run.listeners = {.report = (rows / "report").string()};
  if (detail::pagesBuilt())
    CHECK_REFUSED(prepareRun(run), "listeners.report: needs data to test with, or data.validationExamples");
}

TEST_CASE("a run is suggested for few rows, too, but not for one class, one example or other data") {
  for (const int count : {2, 3, 5, 9, 33}) {
    CAPTURE(count);
    std::string text = "a,b,kind\n";
    for (int i = 0; i < count; ++i) text += i % 2 == 0 ? "1,-1,cat\n" : "-1,1,dog\n";
    const Rows rows(text);
    RunFile run = suggestedRun({.type = "csv", .train = rows.file});
    run.training.model = (rows / "model.safetensors").string();
    run.training.epochs = 1;
    run.listeners.progress = false;
    run.listeners.testEvery = 0;
    const test::LogLines log;
    RunSession session(RunFile::parse(run.toJson()));
    session.train();
    CHECK(session.saved());
    CHECK(log.all().empty());
  }
  const auto refusal = [](const std::string& text, bool regression) {
    const Rows rows(text);
    return test::thrown<Error>(
        [&] { suggestedRun({.type = "csv", .train = rows.file, .regression = regression}); });
  };
  CHECK_CONTAINS(refusal("a,kind\n1,cat\n2,cat\n", false), "rows.csv: has a single class");
  CHECK_CONTAINS(refusal("a,region\n1,NA\n7,EU\n1,NA\n2,EU\n7,EU\n", false),
                 "needs two; 2 rows have no label (NA); data.label=NAME names");
  CHECK_CONTAINS(refusal("a,y\n1,2\n", true), "rows.csv: has one example");
  CHECK_REFUSED(suggestedRun({.type = "mnist"}),
                "a run is suggested for a table or a folder of pictures, not for data of type mnist");
}
