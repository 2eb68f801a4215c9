#include <fmt/format.h>
#include <sys/stat.h>

#include "muster/core/comparison/results_file.h"
#include "tests/support/log_lines.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using muster::test::readFile;
using muster::test::TemporaryDirectory;
using muster::test::thrown;
using muster::test::writeFile;

RunRecord runOf(const std::string& arm, std::int64_t seed) {
  return {.arm = arm,
          .settings = {"training.strategy.every=10", "training.workers=" + arm},
          .seed = seed,
          .workers = 2,
          .points = {{100, 2, 1, 0.125, 4000, 2.5, 2.25, 1 / 3., 1e-3},
                     {200, 4, 2, 0.3, 8000, 2, 1.75, 0.5, 0, 1, 6000}},
          .computeSeconds = 0.2,
          .cores = 4,
          .threads = 2,
          .othersBusy = 1.5,
          .loaded = true,
          .recomputed = {0.1 / 3}};
}

ComparisonGrid gridOf(std::vector<ComparisonArm> arms, std::vector<std::int64_t> seeds) {
  return {.common = {{"training.epochs", "2"}, {"network.l2", "0.5"}},
          .trainExamples = 90,
          .testExamples = 10,
          .testEvery = 9,
          .metric = "accuracy",
          .arms = std::move(arms),
          .seeds = std::move(seeds)};
}

const ComparisonArm kOne{"one", {"training.workers=1"}}, kTwo{"two", {"training.workers=2"}};

/// A file with one run of a grid with the arm "one" and the seeds 1 and 2.
std::filesystem::path written(const TemporaryDirectory& directory) {
  const auto path = directory / "results.jsonl";
  ResultsFile file(path);
  file.join(gridOf({kOne}, {1, 2}));
  file.add(runOf("1", 1));
  return path;
}

TEST_CASE("runs are written to the results file and read back") {
  const TemporaryDirectory directory;
  const auto path = written(directory);
  CHECK(directory.names() == std::set<std::string>{"results.jsonl"});
  ResultsFile file(path);
  auto failed = runOf("2", 2);
  failed.guess = "no better";
  failed.failure = "the score is nan";
  file.add(failed);
  const ResultsFile again(path);
  REQUIRE(again.runs().size() == 2);
  const auto expected = runOf("1", 1);
  const auto* found = again.find(expected.settings, 1);
  REQUIRE(found != nullptr);
  CHECK(found->points == expected.points);
  CHECK(toJson(*found) == toJson(expected));
  CHECK_FALSE(found->failed());
  CHECK(again.runs()[1].failure == "the score is nan");
  CHECK(again.runs()[1].guess == "no better");
  CHECK(again.find(expected.settings, 2) == nullptr);
}

TEST_CASE("seeds and arms join a comparison, and what is left open is the file's") {
  const TemporaryDirectory directory;
  ResultsFile file(written(directory));
  file.join(gridOf({kTwo, kOne}, {3, 1}));
  CHECK(file.grid().arms == std::vector{kOne, kTwo});
  CHECK(file.grid().seeds == std::vector<std::int64_t>{1, 2, 3});
  auto open = gridOf({}, {});
  open.testEvery = 0;
  file.join(open);
  CHECK(file.grid().arms.size() == 2);
  CHECK(file.grid().testEvery == 9);
  file.add(runOf("2", 3));
  const ResultsFile again(file.path());
  CHECK(again.grid().arms == std::vector{kOne, kTwo});
  CHECK(again.grid().seeds == std::vector<std::int64_t>{1, 2, 3});
  CHECK(again.grid().common == gridOf({}, {}).common);
}

TEST_CASE("other contents of the data are refused; the checksum of an earlier version is not compared") {
  const TemporaryDirectory directory;
  const auto path = directory / "results.jsonl";
  auto grid = gridOf({kOne}, {1, 2});
  grid.contents = "0123456789abcdef";
  ResultsFile file(path);
  file.join(grid);
  file.add(runOf("1", 1));
  auto other = grid;
  other.contents = "0";
  CHECK(thrown<FileError>([&] { ResultsFile(path).join(other); }) ==
        path.string() +
            ": holds a comparison of another run: the data's contents 0123456789abcdef (now 0); give another "
            "file");
  auto text = readFile(path);
  const std::string now = "\"dataChecksum\": \"0123456789abcdef\"";
  REQUIRE(text.find(now) != text.npos);
  writeFile(path, text.replace(text.find(now), now.size(), "\"contents\": \"89abcdef\""));
  ResultsFile earlier(path);
  const test::LogLines lines;
  earlier.join(other);
  CHECK(earlier.grid().contents.empty());  // not that of other data, which its runs did not have
  REQUIRE(lines.all().size() == 1);
  CHECK(lines.all().front() == "warning: " + path.string() +
                                   ": an earlier version of muster wrote no checksum of all the data, so "
                                   "whether they have changed since is not checked");
}

TEST_CASE("further values of a tuned field join a comparison, and another field is refused") {
  const TemporaryDirectory directory;
  ResultsFile file(directory / "results.jsonl");
  auto grid = gridOf({kOne}, {1});
  grid.tune = {"learningRate=0.01,0.1", "batch=8,16"};
  file.join(grid);
  grid.tune = {"batch=16,32", "learningRate=1,0.10"};
  file.join(grid);
  const std::vector<std::string> joined{"learningRate=0.01,0.1,1", "batch=8,16,32"};
  CHECK(file.grid().tune == joined);
  grid.tune = {"learningRate=0.1,1", "batch=8,16"};  // a part of them
  file.join(grid);
  file.join(gridOf({}, {2}));
  CHECK(file.grid().tune == joined);
  grid.tune = {"learningRate=0.1,1"};
  CHECK(thrown<FileError>([&] {
          file.join(grid);
        }).find("tune learningRate=0.01,0.1,1 batch=8,16,32 (now learningRate=0.1,1); give another file") !=
        std::string::npos);
}

TEST_CASE("equal values of a tuned field, which an earlier version took, are one") {
  const TemporaryDirectory directory;
  const auto path = written(directory);
  auto text = readFile(path);
  const std::string none = R"("tune": [])";
  REQUIRE(text.find(none) != std::string::npos);
  test::writeFile(path, text.replace(text.find(none), none.size(), R"("tune": ["rate=0.1,0.10, 0.2"])"));
  CHECK(ResultsFile(path).grid().tune == std::vector<std::string>{"rate=0.1,0.2"});
}

TEST_CASE("another run file, other data or another arm of the same name are refused with the difference") {
  const TemporaryDirectory directory;
  const auto path = written(directory);
  const auto bytes = readFile(path);
  const auto refusal = [&](auto change) {
    auto grid = gridOf({kOne}, {1});
    change(grid);
    auto text = thrown<FileError>([&] { ResultsFile(path).join(grid); });
    REQUIRE(text.starts_with(path.string() + ": holds "));
    return text.substr(path.string().size() + 8);
  };
  const std::string other = "a comparison of another run: ", end = "; give another file";
  CHECK(refusal([](ComparisonGrid& grid) { grid.common["training.epochs"] = "3"; }) ==
        other + "training.epochs 2 (now 3)" + end);
  CHECK(refusal([](ComparisonGrid& grid) { grid.common.erase("network.l2"); }) ==
        other + "network.l2 0.5 (now unset)" + end);
  CHECK(refusal([](ComparisonGrid& grid) { grid.trainExamples = 91; }) ==
        other + "examples to train with 90 (now 91)" + end);
  CHECK(refusal([](ComparisonGrid& grid) { grid.testEvery = 8; }) == other + "testEvery 9 (now 8)" + end);
  CHECK(refusal([](ComparisonGrid& grid) { grid.tune = {"learningRate=0.1,0.2"}; }) ==
        other + "tune unset (now learningRate=0.1,0.2)" + end);
  CHECK(refusal([](ComparisonGrid& grid) {
          grid.arms = {{"one", {"training.workers=3"}}};
        }) == "another arm \"one\": training.workers=1 (now training.workers=3); give this one another name");
  CHECK(readFile(path) == bytes);
}

TEST_CASE("a file with other content is refused, and the error names the line") {
  const TemporaryDirectory directory;
  const auto path = written(directory);
  const auto whole = readFile(path);
  const auto refusal = [&](const std::string& bytes) {
    writeFile(path, bytes);
    auto text = thrown<FileError>([&] { ResultsFile{path}; });
    REQUIRE(text.starts_with(path.string() + ": is no results file: "));
    return text.substr(path.string().size() + 22);
  };
  CHECK(refusal("") == "it is empty; remove it, or give another file");
  CHECK(refusal("hello\n").starts_with("line 1: "));
  CHECK(refusal("{\"program\": \"compare_convergence\", \"format\": 1}\n") ==
        "line 1: it is not of this program; give another file");
  auto earlier = whole;
  const std::string format = "\"format\": 2";
  REQUIRE(earlier.find(format) != earlier.npos);
  CHECK(refusal(earlier.replace(earlier.find(format), format.size(), "\"format\": 1")) ==
        "line 1: it has format 1, of another version, and this one reads 2; give another file");
  const std::string again = "; give another file, or remove that line and its run is trained again";
  for (const std::size_t cut : {2, 30})
    CHECK(refusal(whole.substr(0, whole.size() - cut)) ==
          "line 2: it is not whole, its end is missing" + again);
  CHECK(refusal(whole + "{}\n") ==
        "line 3: arm: is missing; give another file, or remove that line and its run is trained again");
  CHECK(refusal(whole + whole.substr(whole.find('\n') + 1)) ==
        "line 3: it has the same run as an earlier line; give another file, or remove that line and its run "
        "is trained again");
  std::filesystem::remove(path);
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK(thrown<FileError>([&] { ResultsFile{path}; }) ==
        path.string() + ": cannot be read: it is not a regular file");
}

TEST_CASE("a comparison without common settings continues, and errors say what to give instead") {
  const TemporaryDirectory directory;
  const ComparisonGrid grid{.metric = "r2", .arms = {kOne}, .seeds = {1}};
  {
    ResultsFile file(directory / "results.jsonl");
    CHECK(file.fresh());
    file.join(grid);
    file.add({.arm = "one", .settings = {"rate=1"}, .seed = 1, .metric = "r2", .points = {{.score = 0.5}}});
  }
  ResultsFile file(directory / "results.jsonl", "another --out");
  CHECK_FALSE(file.fresh());
  file.join({.arms = {kTwo}, .seeds = {2}});
  CHECK(file.grid().arms == std::vector{kOne, kTwo});
  CHECK(file.runs().front().metric == "r2");  // the header's
  CHECK(thrown<FileError>([&] { file.join({.tune = {"rate=1,2"}}); }).ends_with("; give another --out"));
}

TEST_CASE("a run with the settings and the seed of a finished one is refused, and nothing is written") {
  const TemporaryDirectory directory;
  ResultsFile file(written(directory));
  const auto bytes = readFile(file.path());
  auto other = runOf("1", 1);
  other.arm = "other";
  CHECK(thrown<InvalidArgument>([&] { file.add(other); }) ==
        "results: \"other\" with seed 1 has the settings of a finished run of \"1\", and settings identify "
        "runs");
  CHECK(readFile(file.path()) == bytes);
  CHECK(file.runs().size() == 1);
}

TEST_CASE("a run that cannot be written leaves the results as they were") {
  const TemporaryDirectory directory;
  ResultsFile file(directory / "missing" / "results.jsonl");
  file.join(gridOf({kOne}, {1}));
  CHECK_THROWS_AS(file.add(runOf("1", 1)), FileError);
  CHECK(file.runs().empty());
}

}  // namespace
}  // namespace muster
