#include "tests/bench/slower.h"

#include <doctest/doctest.h>

#include <fstream>

#include "tests/support/temporary_directory.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::bench;
using namespace muster::test;

namespace {

Arm arm(const std::string& name, const char* field, const std::vector<double>& values) {
  Arm made{name, ""};
  for (const double value : values) made.results.push_back({{field, value}});
  return made;
}

std::map<std::string, std::vector<Arm>> table(const std::vector<double>& machine,
                                              const std::vector<double>& rates) {
  return {{"net",
           {arm("machine, 1 thread", "operationsPerSecond", machine),
            arm("muster, 1 worker", "samplesPerSecond", rates)}}};
}

}  // namespace

TEST_CASE("a benchmark is certainly slower only if every round is slower, relative to the machine's pace") {
  const TemporaryDirectory directory;
  const auto file = (directory / "old.json").string();
  writeJson(table({100, 100, 100}, {10, 11, 12}), file);
  const OldMeasurements old(file);

  auto changes = old.changes(table({100, 100, 100}, {9.9, 9, 8}));
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].certain);
  CHECK(changes[0].factor == doctest::Approx(9.0 / 11));

  changes = old.changes(table({100, 100, 100}, {10.1, 9, 8}));
  CHECK_FALSE(changes[0].certain);

  // A machine of half the pace: nothing changed.
  changes = old.changes(table({50, 50, 50}, {5, 5.5, 6}));
  CHECK_FALSE(changes[0].certain);
  CHECK(changes[0].factor == doctest::Approx(1));

  changes = old.changes(table({100, 100, 100}, {13, 14, 15}));
  CHECK(changes[0].certain);
  CHECK(changes[0].factor > 1);
  CHECK(old.changes({{"other", table({1}, {1}).at("net")}}).empty());
}

TEST_CASE("the median of an even number of rounds is the mean of the middle two") {
  const TemporaryDirectory directory;
  const auto file = (directory / "old.json").string();
  writeJson(table({100, 100, 100, 100}, {1, 8, 10, 20}), file);
  const auto changes = OldMeasurements(file).changes(table({100, 100}, {5, 10}));
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].before == doctest::Approx(9));
  CHECK(changes[0].after == doctest::Approx(7.5));
  CHECK(changes[0].factor == doctest::Approx(7.5 / 9));
}

TEST_CASE("a file that holds no measurements of --json is named in the error") {
  const TemporaryDirectory directory;
  const auto file = (directory / "old.json").string();
  CHECK(thrown<std::runtime_error>([&] { OldMeasurements{file}; }) == "cannot read " + file);
  std::ofstream(file) << "[1, 2";
  CHECK(thrown<std::runtime_error>([&] { OldMeasurements{file}; }) == file + " is no file that --json wrote");
}
