#include "examples/muster/compare/base_data.h"
#include "examples/muster/compare/output_files.h"
#include "tests/support/log_lines.h"
#include "tests/support/test.h"

namespace comparing {
namespace {

using muster::test::TemporaryDirectory;
using muster::test::writeFile;
using Texts = std::vector<std::string>;

/// @param data  fields of the section, in place of a few mixtures.
BaseRun base(Texts sets,
             const std::string& data = R"("type": "mixtures", "trainExamples": 50, "testExamples": 20)") {
  return {"run.json", R"({"format": "muster-run/1", "network": "mlp", "data": {"batch": 8, )" + data + "}}",
          std::move(sets)};
}

TEST_CASE("the checksum of the data depends on the examples, and not on batches, order or threads") {
  const auto sum = [](Texts sets) {
    sets.emplace_back("data.validationExamples=15");
    auto data = loadData(base(std::move(sets)));
    CHECK(examplesIn(data.train) == 35);
    return contentsOf(data);
  };
  const auto expected = sum({});
  for (const auto* set :
       {"data.batch=7", "data.batch=64", "data.dropLast=true", "data.shuffle=false", "training.workers=3"}) {
    CAPTURE(set);
    CHECK(sum({set}) == expected);
  }
  CHECK(sum({"data.splitSeed=9"}) != expected);  // other examples are held out
  CHECK(sum({"data.testExamples=19"}) != expected);
}

TEST_CASE("the checksum of a table depends on the names of its columns, and on the class of each row") {
  const TemporaryDirectory directory;
  const auto sum = [&](const std::string& table) {
    writeFile(directory / "rows.csv", table);
    return contentsOf(
        loadData(base({}, R"("type": "csv", "train": ")" + (directory / "rows.csv").string() + '"')));
  };
  const std::string table = "a,kind\n0.5,low\n0.25,high\n0.75,high\n";
  const auto expected = sum(table);
  CHECK(sum(table) == expected);
  CHECK(sum("b" + table.substr(1)) != expected);
  CHECK(sum("a,kind\n0.5,high\n0.25,low\n0.75,high\n") != expected);  // as many of each class
}

TEST_CASE("data read again repeat no remarks, but errors and what other threads say are logged") {
  const muster::test::LogLines log;
  loadAgain([] {
    muster::logInfo("a remark");
    muster::logWarning("a warning");
    muster::log(muster::LogLevel::Error, "an error");
    std::jthread([] { muster::logInfo("interrupted"); }).join();
    return muster::LoadedData();
  });
  muster::logInfo("after it");
  CHECK(log.all() == Texts{"an error", "interrupted", "after it"});
}

TEST_CASE("what is held out does not depend on batches") {
  for (const auto* set : {"data.batch=8", "data.batch=40", "data.dropLast=true"}) {
    CAPTURE(set);
    auto run = base({set});
    auto data = loadData(run);
    holdOut(run, {.tune = {"learningRate=1,2"}}, data);
    CHECK(run.run().data.validationExamples == 7);
    CHECK(examplesIn(data.train) == 43);
  }
}

TEST_CASE("a directory that is not a comparison's is refused, and so is a file of the data in it") {
  const TemporaryDirectory directory;
  muster::RunFile run;
  const auto refusal = [&](const std::filesystem::path& out) {
    return muster::test::thrown<muster::Error>([&] { checkOutput(out, "run.json", run); });
  };
  CHECK(refusal(directory / "new") == "");
  CHECK(refusal(directory.path()) == "");
  writeFile(directory / ".lock", "");
  CHECK(refusal(directory.path()) == "");
  writeFile(directory / "report.html", "my report");
  CHECK(refusal(directory.path()) ==
        directory.path().string() +
            ": has files, as report.html, and no results.jsonl, so it is not a comparison's; give another "
            "--out");
  std::filesystem::remove(directory / "report.html");
  writeFile(directory / "results.jsonl", "");
  CHECK(refusal(directory.path()) == "");
  run.data.train = (directory / "table.md").string();
  CHECK(refusal(directory.path()).starts_with("data.train and --out are the same file, "));
  run.data.train = "";
  writeFile(directory / "plots", "mine");
  CHECK_CONTAINS(refusal(directory.path()), "plots");
}

}  // namespace
}  // namespace comparing
