#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "examples/compare_convergence/names.h"
#include "examples/compare_convergence/output_files.h"
#include "examples/compare_convergence/results_file.h"
#include "muster/core/base/error.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/thrown.h"

namespace convergence {
namespace {

using muster::FileError;
using muster::test::readFile;
using muster::test::TemporaryDirectory;
using muster::test::thrown;
using muster::test::writeFile;

RunRecord runOf(Mode mode, std::int64_t seed) {
  return {.arm = {.mode = mode,
                  .workers = 2,
                  .frequency = 10,
                  .batch = 32,
                  .updater = "adam",
                  .learningRate = 0.1 / 3,
                  .synchronousUntil = 7},
          .seed = seed,
          .points = {{100, 2, 1, 0.125, 4000, 2.5, 2.25, 1 / 3., 1e-3},
                     {200, 4, 2, 0.3, 8000, 2, 1.75, 0.5, 0, 1, 6000}},
          .computeSeconds = 0.2,
          .cores = 4};
}

Grid smallGrid() {
  return expandGrid({.modes = {Mode::Averaging},
                     .workers = {2},
                     .frequencies = {10},
                     .batches = {32},
                     .updaters = {{"nesterovs", 0.01}},
                     .scalings = {Scaling::None},
                     .synchronousUntil = {0},
                     .seeds = {1, 2}});
}

const Recipe kRecipe{{"workers", "2"}, {"seeds", "1,2"}};

TEST_CASE("runs are written to the results file and read back") {
  const TemporaryDirectory directory;
  const auto path = directory / "results.jsonl";
  {
    ResultsFile file(path, kRecipe);
    CHECK(file.runs().empty());
    CHECK(directory.names().empty());  // nothing is finished yet
    file.add(runOf(Mode::Averaging, 1));
    auto failed = runOf(Mode::Synchronous, 2);
    failed.failure = "the score is nan";
    file.add(failed);
  }
  CHECK(directory.names() == std::set<std::string>{"results.jsonl"});
  const ResultsFile file(path, kRecipe);
  REQUIRE(file.runs().size() == 2);
  const auto expected = runOf(Mode::Averaging, 1);
  const auto* found = file.find(expected.arm, 1);
  REQUIRE(found != nullptr);
  CHECK(found->points == expected.points);
  CHECK(found->computeSeconds == expected.computeSeconds);
  CHECK(found->cores == 4);
  CHECK_FALSE(found->failed());
  CHECK(file.runs()[1].failure == "the score is nan");
  CHECK(file.find(expected.arm, 2) == nullptr);
}

TEST_CASE("a results file of another grid is refused with the difference, and not changed") {
  const TemporaryDirectory directory;
  const auto path = directory / "results.jsonl";
  ResultsFile(path, kRecipe).add(runOf(Mode::Averaging, 1));
  const auto bytes = readFile(path);
  const Recipe other{{"workers", "2,4"}, {"seeds", "1,2"}, {"epochs", "3"}};
  CHECK(thrown<FileError>([&] { ResultsFile(path, other); }) ==
        path.string() +
            ": holds another grid: --workers 2 (now 2,4), --epochs unset (now 3); give another --out, or the "
            "same options");
  CHECK(readFile(path) == bytes);
}

TEST_CASE("a file with other content is refused, and the error names the line") {
  const TemporaryDirectory directory;
  const auto path = directory / "results.jsonl";
  ResultsFile(path, kRecipe).add(runOf(Mode::Averaging, 1));
  const auto whole = readFile(path);
  const auto refusal = [&](const std::string& bytes) {
    writeFile(path, bytes);
    auto text = thrown<FileError>([&] { ResultsFile(path, kRecipe); });
    REQUIRE(text.starts_with(path.string() + ": is no results file: "));
    return text.substr(path.string().size() + 22);
  };
  CHECK(refusal("") == "it is empty; remove it, or give another --out");
  CHECK(refusal("hello\n").starts_with("line 1: "));
  CHECK(refusal("{\"program\": \"other\"}\n") ==
        "line 1: it is not of this program, or of another version; give another --out");
  CHECK(refusal(whole.substr(0, whole.size() / 2)).starts_with("line 2: "));
  CHECK(refusal(whole + "{}\n") ==
        "line 3: mode: is missing; give another --out, or remove that line and its run is trained again");
  CHECK(refusal(whole + whole.substr(whole.find('\n') + 1)) ==
        "line 3: it has the same arm and seed as an earlier line; give another --out, or remove that line "
        "and its run is trained again");
  writeFile(path, whole);
  CHECK(ResultsFile(path, kRecipe).runs().size() == 1);
}

TEST_CASE("a pipe in place of the file is refused") {
  const TemporaryDirectory directory;
  const auto path = directory / "results.jsonl";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK(thrown<FileError>([&] { ResultsFile(path, kRecipe); }) ==
        path.string() + ": cannot be read: it is not a regular file");
}

TEST_CASE("files that compare_convergence has not written are not replaced") {
  const TemporaryDirectory directory;
  const Grid grid = smallGrid();
  const auto refusal = [&] { return thrown<FileError>([&] { checkOutput(directory.path(), grid); }); };
  CHECK_NOTHROW(checkOutput(directory / "new", grid));
  CHECK(refusal() == "");
  const auto foreign = [&](const std::filesystem::path& file) {
    return fmt::format(
        "{}: would be replaced, but there is no {}, as this program has it; give another --out",
        file.string(), (directory / "results.jsonl").string());
  };
  writeFile(directory / "report.html", "my report");
  CHECK(refusal() == foreign(directory / "report.html"));
  std::filesystem::remove(directory / "report.html");
  const bool withPage = !example::curvesMark().empty();
  const auto curves = directory / "runs" / armFileName(grid.arms.back()) / "seed-2.curves.jsonl";
  std::filesystem::create_directories(curves.parent_path());
  writeFile(curves, fmt::format("{{\"format\":\"{}1\"}}\n", example::curvesMark()));
  CHECK(refusal() == (withPage ? foreign(curves) : ""));

  ResultsFile(directory / "results.jsonl", kRecipe).add(runOf(Mode::Averaging, 1));
  CHECK(refusal() == "");
  writeFile(curves, "my curves");
  const std::string notOurs = ": would be replaced, but this program has not written it; give another --out";
  CHECK(refusal() == (withPage ? curves.string() + notOurs : ""));
  std::filesystem::remove(curves);
  std::filesystem::create_directory(directory / "table.md");
  CHECK(refusal().ends_with("it is a directory"));
}

TEST_CASE("a file in place of a directory of runs is found before the first run") {
  if (example::curvesMark().empty())
    return muster::test::skip("this build has no page, so there are no curves");
  const TemporaryDirectory directory;
  const Grid grid = smallGrid();
  const auto arm = directory / "runs" / armFileName(grid.arms.back());
  std::filesystem::create_directory(directory / "runs");
  writeFile(arm, "mine");
  CHECK(thrown<FileError>([&] { checkOutput(directory.path(), grid); }) ==
        fmt::format("{0}: cannot be made: {0}: Not a directory", arm.string()));
  std::filesystem::remove_all(directory / "runs");
  writeFile(directory / "runs", "mine");
  CHECK(thrown<FileError>([&] {
          checkOutput(directory.path(), grid);
        }).ends_with(fmt::format("cannot be made: {}: Not a directory", (directory / "runs").string())));
}

TEST_CASE("no other option may name a file of the comparison") {
  const TemporaryDirectory directory;
  const Grid grid = smallGrid();
  std::vector<std::string> names{"results.jsonl", "table.md", "report.html", ".lock"};
  if (!example::curvesMark().empty())
    names.push_back("runs/" + armFileName(grid.arms.front()) + "/seed-1.curves.jsonl");
  for (const auto& name : names) {
    CAPTURE(name);
    example::Paths events, data;
    events.writesInto("--tensorboard", directory / name);
    CHECK(thrown<muster::InvalidArgument>([&] {
            checkOutput(directory.path(), grid, events);
          }).ends_with("is to be a file, and " + (directory / name).string() + " a directory"));
    data.reads("--data-dir", directory / name);
    CHECK(thrown<muster::InvalidArgument>([&] {
            checkOutput(directory.path(), grid, data);
          }).starts_with("--data-dir and --out are the same file, "));
  }
  example::Paths inside;
  inside.writesInto("--tensorboard", directory / "events");
  CHECK_NOTHROW(checkOutput(directory.path(), grid, inside));
}

TEST_CASE("a run that cannot be written leaves the results file as it was") {
  const TemporaryDirectory directory;
  ResultsFile file(directory / "missing" / "results.jsonl", kRecipe);
  CHECK_THROWS_AS(file.add(runOf(Mode::Averaging, 1)), FileError);
  CHECK(file.runs().empty());
}

}  // namespace
}  // namespace convergence
