#include "examples/support/nodes.h"
#include "muster/core/base/error.h"
#include "muster/parallel/nodes/launched_processes.h"

namespace example {

muster::Nodes launchedNodes() {
  muster::require(muster::launchedProcesses() == "1",
                  "a launcher has started {} processes, but this program was built without MPI; `./run "
                  "nodes` installs it",
                  muster::launchedProcesses());
  return {};
}

muster::Nodes nodesByMpi() {
  throw muster::InvalidArgument(
      "training.nodes: this muster was built without MPI; install Open MPI (libopenmpi-dev) and build again");
}

}  // namespace example
