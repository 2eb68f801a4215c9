#include "muster/parallel/run/report.h"

#include <boost/json.hpp>

#include "muster/core/io/json_value.h"
#include "muster/parallel/run/detail/watching.h"
#include "muster/parallel/run/run_session.h"
#include "tests/support/on_merge.h"
#include "tests/support/skip.h"
#include "tests/support/test.h"

namespace muster {
namespace {

/// Trains hardly, so that there are mistakes, and writes a report. @return the document of its page.
boost::json::value documentOf(RunSession& session, const RunScores& scores, const std::string& files) {
  const std::filesystem::path directory = session.run().listeners.report;
  CHECK(writeReport(session, scores) == directory.string() + ": " + files);
  const auto page = test::readFile(directory / "report.html");
  const auto begin = page.find("id=\"data\">") + 10;
  return parseJson(page.substr(begin, page.find("</script>", begin) - begin))
      .as_array()
      .back()
      .at("document");
}

RunFile reportedRun(const test::TemporaryDirectory& directory, const std::string& data) {
  return RunFile::parse(fmt::format(
      R"({{"format": "muster-run/1", "data": {0}, "network": {{"name": "mlp", "updater": {{"type": "sgd", "learningRate": 1e-6}}}},
          "training": {{"model": "{1}/m", "devices": "cpu"}}, "listeners": {{"progress": false, "report": "{1}/new/r"}}}})",
      data, directory.path().string()));
}

TEST_CASE("a report of classes has the confusion matrix, and of pictures the mistakes that were surest") {
  if (!detail::pagesBuilt()) return test::skip(detail::kNoPage);
  const test::TemporaryDirectory directory;
  RunSession session(
      reportedRun(directory, R"({"type": "mixtures", "trainExamples": 40, "testExamples": 300})"));
  session.train();
  const auto scores = session.evaluate();
  const auto document = documentOf(session, scores, "report.html, confusion.txt");
  CHECK(
      test::readFile(directory / "new/r/confusion.txt") ==
      fmt::format("{}, from {}\n\n{}", session.data().title, session.data().origin, scores.test->summary()));
  const auto& counted = scores.test->classification();
  REQUIRE(std::ssize(document.at_pointer("/confusion/rows").as_array()) == counted.classes());
  for (std::int64_t a = 0; a < counted.classes(); ++a)
    for (std::int64_t p = 0; p < counted.classes(); ++p)
      CHECK(document.at_pointer(fmt::format("/confusion/rows/{}/counts/{}", a, p)).to_number<double>() ==
            static_cast<double>(counted.count(a, p)));
  const auto& mistakes = document.at("pictures").at("list").as_array();
  REQUIRE(mistakes.size() == 80);  // of more
  double before = 100;
  for (const auto& one : mistakes) {
    CHECK(one.at("pixels").as_string().size() == 2 * 8 * 16);
    const std::string caption(one.at("caption").as_string());
    const double sureness = std::stod(caption.substr(caption.find('(') + 1));
    CHECK(sureness <= before);
    before = sureness;
  }
  CHECK_FALSE(document.as_object().contains("warnings"));
}

TEST_CASE("a report of an interrupted training says so") {
  if (!detail::pagesBuilt()) return test::skip(detail::kNoPage);
  const test::TemporaryDirectory directory;
  std::stop_source stop;
  RunSession session(
      reportedRun(directory, R"({"type": "mixtures", "trainExamples": 400, "testExamples": 30})"),
      {test::onMerge([&](const MergeEvent&) { stop.request_stop(); })});
  session.train(stop.get_token());
  const auto document = documentOf(session, session.evaluate(), "report.html, confusion.txt");
  CHECK(session.interruption() != "");
  CHECK(document.at("warnings").at(0).as_string() == session.interruption());
  CHECK_CONTAINS(test::readFile(directory / "new/r/confusion.txt"), "\n" + session.interruption() + "\n");
}

TEST_CASE("a report of numbers has no matrix, and tells what makes its scores say too little") {
  if (!detail::pagesBuilt()) return test::skip(detail::kNoPage);
  const test::TemporaryDirectory directory;
  const auto rows = (directory / "rows.csv").string();
  std::string text = "a,b\n";
  for (int i = 0; i < 40; ++i) text += fmt::format("{},{}\n", i * i % 7, 0.3 * i);
  test::writeFile(rows, text);
  RunSession session(reportedRun(
      directory,
      fmt::format(R"({{"type": "csv", "train": "{0}", "test": "{0}", "regression": true}})", rows)));
  session.train();
  const auto document = documentOf(session, session.evaluate(), "report.html");
  CHECK(document.at("warnings").as_array().size() == 1);
  CHECK_FALSE(document.as_object().contains("confusion"));
  CHECK_FALSE(std::filesystem::exists(directory / "new/r/confusion.txt"));
}

}  // namespace
}  // namespace muster
