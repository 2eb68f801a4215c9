// The signal that mpirun passes on to its processes, by which `./run nodes` passes Ctrl-C on.
#include <doctest/doctest.h>
#include <signal.h>

#include "tests/examples/convnet.h"

namespace muster {

using test::contains;
using test::Convnet;

TEST_CASE("SIGUSR1 to mpirun ends the training, whose replicas are merged and saved") {
  const Convnet convnet;
  const auto words =
      Convnet::small({"--workers", "1", "--averaging-frequency", "3", "--batch", "32", "--epochs", "100000"});
  std::vector<std::string> arguments{
      "--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-n", "2",
      Convnet::kExecutable};
  const auto train = convnet.launch(words).arguments;
  arguments.insert(arguments.end(), train.begin(), train.end());
  test::Program mpirun(MUSTER_MPIRUN, convnet.Sandbox::launch(arguments));
  REQUIRE(mpirun.awaitText("/100000: score"));
  mpirun.signal(SIGUSR1);
  const auto run = mpirun.wait();
  CAPTURE(run.err);
  CAPTURE(run.out);
  CHECK(contains(run.out, "and --resume continues from there"));
  CHECK(std::filesystem::exists(convnet.directory / "mnist-convnet.safetensors"));
}

}  // namespace muster
