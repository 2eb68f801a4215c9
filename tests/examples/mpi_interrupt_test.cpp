// The signal that mpirun passes on to its processes, by which `./run nodes` passes Ctrl-C on.

#include <csignal>

#include "tests/examples/convnet.h"

namespace muster {

TEST_CASE("SIGUSR1 to mpirun ends the training, whose replicas are merged and saved") {
  const test::ConvnetRun terminal(MUSTER_MPIRUN);
  auto mpirun =
      terminal.start("--allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 -n 2 " MUSTER_PROGRAM
                     " train run.json --workers 1 --batch 32 --epochs 100000");
  REQUIRE(mpirun.awaitText("/100000: score"));
  mpirun.signal(SIGUSR1);
  const auto run = mpirun.wait();
  CAPTURE(run.err);
  CHECK_CONTAINS(run.out, "and --resume continues from there");
  CHECK(terminal.has("model.safetensors"));
}

}  // namespace muster
