// Trainings over real processes that mpirun starts on this machine.
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdlib>
#include <random>
#include <string>

#include "muster/parallel/parallel_wrapper.h"
#include "tests/parallel/every_rule.h"
#include "tests/parallel/nodes_mpi/toy.h"
#include "tests/support/state_bits.h"
#include "tests/support/temporary_directory.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

struct Ended {
  int status = 0;
  std::chrono::duration<double> time;
};

/// @param fate  of node 1. Ends by itself, or `timeout` kills it, which is a failure.
Ended runNodes(int nodes, const std::string& rule, int workers, const TemporaryDirectory& folder,
               const std::string& fate) {
  const std::string command = fmt::format(
      "timeout -k 5 {} {} --allow-run-as-root --oversubscribe {} --mca btl_vader_single_copy_mechanism none "
      "--mca mpi_yield_when_idle 1 -n {} {} '{}' {} {} {} > {}/output 2>&1",
      fate == "well" ? 200 : 60, MUSTER_MPIRUN, fate == "well" ? "" : "--enable-recovery", nodes,
      MUSTER_MPI_NODE, rule, workers, folder.path().string(), fate, folder.path().string());
  const auto begin = std::chrono::steady_clock::now();
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, std::chrono::steady_clock::now() - begin};
}

std::string bitsOf(Model& model) {
  const auto bits = stateBits(model);
  return {reinterpret_cast<const char*>(bits.data()), bits.size()};
}

std::string expectedBits(const AnyStrategy& rule, int nodes, int workers) {
  auto model = mpiToy();
  auto data = mpiToyData(nodes * workers);
  ParallelWrapper::Builder(model)
      .workers(nodes * workers)
      .groups(nodes)
      .pinThreads(false)
      .strategy(rule)
      .build()
      .fit(data, 2);
  return bitsOf(model);
}

void checkEveryRule(int nodes, int workers) {
  for (const auto& rule : everyRule()) {
    const auto strategy = rule.options.make();
    if (strategy->arrivals(nodes * workers) || !strategy->whyNotOverNodes().empty()) continue;
    CAPTURE(rule.name);
    const TemporaryDirectory folder;
    const auto ended = runNodes(nodes, rule.name, workers, folder, "well");
    const auto output = readFile(folder / "output");
    CAPTURE(output);
    CHECK(ended.status == 0);
    const auto expected = expectedBits(rule.options, nodes, workers);
    for (int n = 0; n < nodes; ++n) {
      CHECK(readFile(folder / fmt::format("problem{}", n)) == "");
      CHECK(readFile(folder / fmt::format("bits{}", n)) == expected);
    }
  }
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// Both other nodes of three end, name node 1, and have the same model.
void checkSurvivors(const std::string& rule, const std::string& fate, std::string_view why) {
  CAPTURE(fate);
  const TemporaryDirectory folder;
  const auto ended = runNodes(3, rule, 1, folder, fate);
  const auto output = readFile(folder / "output");
  CAPTURE(output);
  CHECK(ended.status != 124);  // of timeout; mpirun ends with 0, with --enable-recovery
  CHECK(ended.time < 55s);
  for (const int n : {0, 2}) {
    const auto problem = readFile(folder / fmt::format("problem{}", n));
    CAPTURE(problem);
    CHECK(contains(problem, "node 1 ("));
    if (!contains(problem, "is lost, as")) CHECK(contains(problem, why));
  }
  CHECK(readFile(folder / "bits0").size() == expectedBits(Averaging{}, 1, 1).size());
}

}  // namespace

TEST_CASE("two processes of two workers have the bits of one process, by every rule") {
  checkEveryRule(2, 2);
}

TEST_CASE("three processes of one worker have the bits of one process, by every rule") {
  checkEveryRule(3, 1);
}

TEST_CASE("a process that is killed at a random moment ends the training of the others, which name it") {
  std::mt19937 random(20261122);
  const char* const rules[] = {"averaging", "synchronous gradients", "diloco", "overlapped"};
  for (int i = 0; i < MUSTER_KILLS; ++i)
    checkSurvivors(rules[i % 4], fmt::format("kill {}", 20 + random() % 500), "nothing was heard of");
}

TEST_CASE("so does one that is stopped") {
  checkSurvivors("averaging", "stop", "nothing was heard of");
}

TEST_CASE("so does one whose step throws") {
  checkSurvivors("averaging", "throw", "has failed");
}
