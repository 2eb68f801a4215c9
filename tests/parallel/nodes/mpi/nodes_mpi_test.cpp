// Trainings over real processes that mpirun starts on this machine.
#include "tests/parallel/nodes/node_processes/checks.h"

using namespace muster;
using namespace muster::test;

namespace {

std::string launch(const ProcessRun& run) {
  return fmt::format(
      "{} --allow-run-as-root --oversubscribe {} --mca btl_vader_single_copy_mechanism none "
      "--mca mpi_yield_when_idle 1 -n {} {} {}",
      MUSTER_MPIRUN, run.fate == "well" ? "" : "--enable-recovery", run.nodes, MUSTER_MPI_NODE,
      run.arguments());
}

}  // namespace

TEST_CASE("two processes of two workers have the bits of one process; their log lines name them") {
  checkRules(launch, 2, 2);
}

TEST_CASE("three processes of one worker have the bits of one process; their log lines name them") {
  checkRules(launch, 3, 1);
}

TEST_CASE("a process that is killed at a random moment ends the training of the others, which name it") {
  checkKills(launch, "nothing was heard of");
}

TEST_CASE("a process that is stopped, or whose step throws, ends the training of the others") {
  checkSurvivors(launch, "averaging", "stop", "nothing was heard of");
  checkSurvivors(launch, "gossip on a ring", "throw", "has failed");
}

TEST_CASE("a program that initialises MPI itself trains, or is refused if it does that for one thread") {
  // It finalises MPI while the connection lives; with "multiple" it calls MPI during the training.
  for (const std::string level : {"serialized", "multiple", "funneled"}) {
    CAPTURE(level);
    const TemporaryDirectory folder;
    const auto run = [&](const ProcessRun&) {
      return fmt::format("{} --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 -n 2 {} {} {} 1",
                         MUSTER_MPIRUN, MUSTER_MPI_OWNER_NODE, level, folder.path().string());
    };
    const int status = start(run, {2, "", 1, folder.path().string(), "well"});
    const auto output = readFile(folder / "output");
    CAPTURE(output);
    CHECK(status == 0);
    for (const std::string node : {"0", "1"}) {
      const auto problem = readFile(folder / ("problem" + node));
      if (level == "funneled") {
        CHECK(problem.starts_with("nodes: the program has initialised MPI for one thread"));
        continue;
      }
      CHECK(readFile(folder / ("bits" + node)) == expectedBits(Averaging{.frequency = 3}, 2, 1));
      CHECK(problem == "nodes: MPI is finalised, and a process can initialise it only once");
      CHECK_CONTAINS(readFile(folder / ("fit" + node)), "this node has ended its part in the training");
    }
  }
}
