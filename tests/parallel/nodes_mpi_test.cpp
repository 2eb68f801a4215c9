// Trainings over real processes that mpirun starts on this machine.
#include "tests/parallel/node_processes/checks.h"

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

}  // namespace

TEST_CASE("two processes of two workers have the bits of one process, by every rule") {
  checkEveryRule(byMpi, 2, 2);
}

TEST_CASE("three processes of one worker have the bits of one process, by every rule") {
  checkEveryRule(byMpi, 3, 1);
}

TEST_CASE("the log lines of each process name it") {
  checkLogLines(byMpi);
}

TEST_CASE("a process that is killed at a random moment ends the training of the others, which name it") {
  checkKills(byMpi, "nothing was heard of");
}

TEST_CASE("so does one that is stopped") {
  checkSurvivors(byMpi, "averaging", "stop", "nothing was heard of");
}

TEST_CASE("so does one whose step throws") {
  checkSurvivors(byMpi, "averaging", "throw", "has failed");
}
