#include <sys/stat.h>

#include "muster/core/comparison/results_file.h"
#include "tests/support/log_lines.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

using Seeds = std::vector<std::int64_t>;
using Arms = std::vector<ComparisonArm>;

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

/// What `join` refuses, without the path and " holds a comparison of another run: " where it begins so.
std::string joining(ResultsFile& file, const ComparisonGrid& grid) {
  auto text = thrown<FileError>([&] { file.join(grid); });
  for (const auto& begin : {file.path().string() + ": holds ", std::string("a comparison of another run: ")})
    if (text.starts_with(begin)) text = text.substr(begin.size());
  return text;
}

/// The text with the only occurrence of a part replaced.
std::string with(std::string text, const std::string& part, const std::string& other) {
  REQUIRE(text.find(part) != text.npos);
  return text.replace(text.find(part), part.size(), other);
}

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
  CHECK(file.grid().arms == Arms{kOne, kTwo});
  CHECK(file.grid().seeds == Seeds{1, 2, 3});
  auto open = gridOf({}, {});
  open.testEvery = 0;
  file.join(open);
  CHECK(file.grid().testEvery == 9);
  file.add(runOf("2", 3));
  const ResultsFile again(file.path());
  CHECK(again.grid().arms == Arms{kOne, kTwo});
  CHECK(again.grid().seeds == Seeds{1, 2, 3});
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
  CHECK(joining(file, other) == "the data's contents 0123456789abcdef (now 0); give another file");
  writeFile(path, with(readFile(path), R"("dataChecksum": "0123456789abcdef")", R"("contents": "89abcdef")"));
  ResultsFile earlier(path);
  const LogLines lines;
  earlier.join(other);
  CHECK(earlier.grid().contents.empty());  // not that of other data, which its runs did not have
  CHECK(lines.all() == std::vector{"warning: " + path.string() +
                                   ": an earlier version of muster wrote no checksum of all the data, so "
                                   "whether they have changed since is not checked"});
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
  CHECK(joining(file, grid) ==
        "tune learningRate=0.01,0.1,1 batch=8,16,32 (now learningRate=0.1,1); give another file");
  // Equal values, which an earlier version took, are one.
  const TemporaryDirectory earlier;
  const auto path = written(earlier);
  writeFile(path, with(readFile(path), R"("tune": [])", R"("tune": ["rate=0.1,0.10, 0.2"])"));
  CHECK(ResultsFile(path).grid().tune == std::vector<std::string>{"rate=0.1,0.2"});
}

TEST_CASE("another run file, other data or another arm of the same name are refused with the difference") {
  const TemporaryDirectory directory;
  const auto path = written(directory);
  const auto bytes = readFile(path);
  ResultsFile file(path);
  const auto refusal = [&](void (*change)(ComparisonGrid&)) {
    auto grid = gridOf({kOne}, {1});
    change(grid);
    return joining(file, grid);
  };
  const std::string end = "; give another file";
  CHECK(refusal([](auto& g) { g.common["training.epochs"] = "3"; }) == "training.epochs 2 (now 3)" + end);
  CHECK(refusal([](auto& g) { g.common.erase("network.l2"); }) == "network.l2 0.5 (now unset)" + end);
  CHECK(refusal([](auto& g) { g.trainExamples = 91; }) == "examples to train with 90 (now 91)" + end);
  CHECK(refusal([](auto& g) { g.testEvery = 8; }) == "testEvery 9 (now 8)" + end);
  CHECK(refusal([](auto& g) { g.tune = {"rate=0.1,0.2"}; }) == "tune unset (now rate=0.1,0.2)" + end);
  CHECK(refusal([](auto& g) {
          g.arms = {{"one", {"training.workers=3"}}};
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
  CHECK(refusal(with(whole, R"("format": 2)", R"("format": 1)")) ==
        "line 1: it has format 1, of another version, and this one reads 2; give another file");
  const std::string again = "; give another file, or remove that line and its run is trained again";
  for (const std::size_t cut : {2, 30})
    CHECK(refusal(whole.substr(0, whole.size() - cut)) ==
          "line 2: it is not whole, its end is missing" + again);
  CHECK(refusal(whole + "{}\n") == "line 3: arm: is missing" + again);
  CHECK(refusal(whole + whole.substr(whole.find('\n') + 1)) ==
        "line 3: it has the same run as an earlier line" + again);
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
  CHECK(file.grid().arms == Arms{kOne, kTwo});
  CHECK(file.runs().front().metric == "r2");  // the header's
  CHECK(thrown<FileError>([&] { file.join({.tune = {"rate=1,2"}}); }).ends_with("; give another --out"));
}

TEST_CASE(
    "a run like a finished one, or that cannot be written, is refused and leaves the results as they were") {
  const TemporaryDirectory directory;
  ResultsFile file(written(directory));
  const auto bytes = readFile(file.path());
  auto other = runOf("1", 1);
  other.arm = "other";
  CHECK_REFUSED(file.add(other),
                "results: \"other\" with seed 1 has the settings of a finished run of \"1\", and settings "
                "identify runs");
  CHECK(readFile(file.path()) == bytes);
  CHECK(file.runs().size() == 1);
  ResultsFile missing(directory / "missing" / "results.jsonl");
  missing.join(gridOf({kOne}, {1}));
  CHECK_THROWS_AS(missing.add(runOf("1", 1)), FileError);
  CHECK(missing.runs().empty());
}

}  // namespace
}  // namespace muster::test
