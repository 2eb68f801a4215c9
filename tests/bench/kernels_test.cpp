#include "tests/bench/kernels.h"

#include <doctest/doctest.h>

#include "tests/bench/slower.h"
#include "tests/support/temporary_directory.h"

using namespace muster;
using namespace muster::bench;
using namespace muster::test;

namespace {

/// The output of a program with kernels that take `scale` times as long.
boost::json::object output(double scale) {
  return {{"context", boost::json::object{}},
          {"benchmarks",
           {{{"name", "product"},
             {"run_type", "iteration"},
             {"time_unit", "ns"},
             {"real_time", 400 * scale},
             {"cpu_time", 200 * scale},
             {"FLOP/s", 50e9 / scale}},
            {{"name", "product"}, {"run_type", "aggregate"}, {"cpu_time", 0}, {"FLOP/s", 0}},
            {{"name", "pooling"},
             {"run_type", "iteration"},
             {"time_unit", "us"},
             {"real_time", 1},
             {"cpu_time", 1000 * scale},
             {"bytes_per_second", 5e9 / scale}},
            {{"name", "barrier/real_time"},
             {"run_type", "iteration"},
             {"time_unit", "ns"},
             {"real_time", 500 * scale},
             {"cpu_time", 1}},
            {{"name", "bf16"},
             {"run_type", "iteration"},
             {"error_occurred", true},
             {"error_message", "not here"},
             {"cpu_time", 0}}}}};
}

boost::json::object machine(double pace) {
  return {{"operationsPerSecond", 90e9 * pace},
          {"copyBytesPerSecond", 10e9 * pace},
          {"operationsPerProcessorSecond", 100e9 * pace},
          {"copyBytesPerProcessorSecond", 20e9 * pace}};
}

std::vector<Arm> kernels(const std::vector<double>& scales, double pace) {
  std::vector<Arm> all;
  for (const double scale : scales) addKernels(all, output(scale), machine(pace));
  return all;
}

}  // namespace

TEST_CASE("kernels are shares of the machine's peak or of its copies, by processor time unless they wait") {
  const auto all = kernels({1, 2, 1}, 1);
  REQUIRE(all.size() == 4);
  CHECK(*find(all, "product").median("ofMachine") == doctest::Approx(0.5));
  CHECK(*find(all, "product").median("callsPerSecond") == doctest::Approx(5e6));
  CHECK(find(all, "product").results.size() == 3);
  CHECK(*find(all, "pooling").median("ofMachine") == doctest::Approx(0.25));
  CHECK(*find(all, "pooling").median("callsPerSecond") == doctest::Approx(1e3));
  CHECK(*find(all, "barrier/real_time").median("callsPerSecond") == doctest::Approx(2e6));
  CHECK(*find(all, "barrier/real_time").median("ofMachine") == doctest::Approx(2e6 / 90e9));
  CHECK(find(all, "bf16").failure == "not here");
  CHECK(find(all, "bf16").results.empty());
}

TEST_CASE("kernels are compared with an earlier measurement, relative to the machine's pace") {
  const TemporaryDirectory directory;
  const auto file = (directory / "old.json").string();
  writeJson({{"kernels", kernels({1, 1.01, 1.02}, 1)}}, file);
  const OldMeasurements old(file);

  auto changes = old.changes({{"kernels", kernels({1.1, 1.12, 1.2}, 1)}});
  REQUIRE(changes.size() == 3);  // all but the one that was skipped
  for (const auto& change : changes) {
    CHECK(change.certain);
    CHECK(change.factor == doctest::Approx(1.01 / 1.12));
  }
  CHECK(changes[0].before == doctest::Approx(5e6 / 1.01));

  // A machine of half the pace: nothing changed.
  changes = old.changes({{"kernels", kernels({2, 2.02, 2.04}, 0.5)}});
  REQUIRE(changes.size() == 3);
  for (const auto& change : changes) {
    CHECK_FALSE(change.certain);
    CHECK(change.factor == doctest::Approx(1));
  }
}
