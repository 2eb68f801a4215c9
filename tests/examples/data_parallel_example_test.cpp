#include <sstream>

#include "tests/examples/sandbox.h"
#include "tests/support/devices.h"

using namespace muster::test;

namespace {

/// What the program prints with these options.
std::string printed(const std::string& options) {
  return Sandbox(MUSTER_DATA_PARALLEL).succeeds(options).out;
}

/// "pass 1: loss 2.5" and so on.
std::vector<double> losses(const std::string& text) {
  std::vector<double> all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("pass ")) all.push_back(std::stod(line.substr(line.rfind(' '))));
  return all;
}

}  // namespace

TEST_CASE("the example shows the sizes of PyTorch's tutorial, inside and outside, and its loss falls") {
  const auto out = printed("");
  CHECK(
      out.starts_with("100 examples in batches of 30, replicas: 3\n\n"
                      "  replica 0 on cpu: input [10, 5], output [10, 2]\n"
                      "  replica 1 on cpu: input [10, 5], output [10, 2]\n"
                      "  replica 2 on cpu: input [10, 5], output [10, 2]\n"
                      "outside: input [30, 5], output [30, 2]\n"));
  CHECK_CONTAINS(out,
                 "  replica 0 on cpu: input [4, 5], output [4, 2]\n"
                 "  replica 1 on cpu: input [3, 5], output [3, 2]\n"
                 "  replica 2 on cpu: input [3, 5], output [3, 2]\n"
                 "outside: input [10, 5], output [10, 2]\n");
  const auto byPass = losses(out);
  REQUIRE(byPass.size() == 6);
  for (std::size_t i = 1; i < byPass.size(); ++i) CHECK(byPass[i] < byPass[i - 1]);
  CHECK(byPass.back() < 0.1 * byPass.front());
}

TEST_CASE("the losses do not depend on the number of replicas") {
  const auto one = losses(printed("--replicas 1 --batch 33")),
             five = losses(printed("--replicas 5 --batch 33"));
  REQUIRE(one.size() == 6);
  REQUIRE(five.size() == 6);
  for (std::size_t i = 0; i < one.size(); ++i) CHECK(five[i] == doctest::Approx(one[i]).epsilon(1e-4));
}

TEST_CASE("more replicas than examples are accepted") {
  const auto few = printed("--replicas 4 --batch 2");
  CHECK_CONTAINS(few, "replica 1 on cpu: input [1, 5]");
  CHECK_LACKS(few, "replica 2 ");
}

TEST_CASE_ON("replicas on a GPU learn the same as those on the CPU", Where, OnGpu) {
  if (!isHere(MUSTER_DATA_PARALLEL)) return skip("the program was not brought along");
  const auto out = printed("--device cuda");
  CHECK_CONTAINS(out, "  replica 2 on cuda:0: input [10, 5], output [10, 2]\n");
  const auto here = losses(out), cpu = losses(printed(""));
  REQUIRE(here.size() == cpu.size());
  for (std::size_t i = 0; i < cpu.size(); ++i) CHECK(here[i] == doctest::Approx(cpu[i]).epsilon(0.05));
}
