// Trainings over real processes that mpirun starts on this machine.
#include "tests/parallel/nodes/node_processes/checks.h"

using namespace muster;
using namespace muster::test;

namespace {

std::string byMpi(const ProcessRun& run) {
  return fmt::format(
      "{} --allow-run-as-root --oversubscribe {} --mca btl_vader_single_copy_mechanism none "
      "--mca mpi_yield_when_idle 1 -n {} {} {}",
      MUSTER_MPIRUN, run.fate == "well" ? "" : "--enable-recovery", run.nodes, MUSTER_MPI_NODE,
      run.arguments());
}

/// Runs two processes that initialise MPI themselves for `level`.
void checkOwner(const std::string& level, bool trains) {
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
    if (!trains) {
      CHECK(problem.starts_with("nodes: the program has initialised MPI for one thread"));
      continue;
    }
    CHECK(readFile(folder / ("bits" + node)) == expectedBits(Averaging{.frequency = 3}, 2, 1));
    CHECK(problem == "nodes: MPI is finalised, and a process can initialise it only once");
    const auto fit = readFile(folder / ("fit" + node));
    CAPTURE(fit);
    CHECK(fit.find("this node has ended its part in the training") != std::string::npos);
  }
}

}  // namespace

TEST_CASE("a program that initialises MPI for serialised calls finalises it while the connection lives") {
  checkOwner("serialized", true);
}

TEST_CASE("a program that initialises MPI for several threads calls it during the training") {
  checkOwner("multiple", true);
}

TEST_CASE("a program that initialises MPI for one thread is refused") {
  checkOwner("funneled", false);
}

TEST_CASE("two processes of two workers have the bits of one process, by a rule for each way of sending") {
  checkRules(byMpi, 2, 2);
}

TEST_CASE("three processes of one worker have the bits of one process, by a rule for each way of sending") {
  checkRules(byMpi, 3, 1);
}

TEST_CASE("the log lines of each process name it") {
  checkLogLines(byMpi);
}

TEST_CASE("a process that is killed at a random moment ends the training of the others, which name it") {
  checkKills(byMpi, "nothing was heard of");
}

TEST_CASE("a process that is stopped ends the training of the others") {
  checkSurvivors(byMpi, "averaging", "stop", "nothing was heard of");
}

TEST_CASE("a process whose step throws ends the training of the others") {
  checkSurvivors(byMpi, "gossip on a ring", "throw", "has failed");
}
