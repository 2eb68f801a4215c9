#include "muster/core/base/error.h"
#include "muster/parallel/nodes/launched_processes.h"
#include "muster/parallel/run/detail/node_options.h"

namespace muster::detail {

Nodes launchedNodes() {
  require(launchedProcesses() == "1",
          "a launcher has started {} processes, but this muster was built without MPI; install Open MPI "
          "(libopenmpi-dev) and build again",
          launchedProcesses());
  return {};
}

Nodes nodesByMpi() {
  throw InvalidArgument(
      "training.nodes: this muster was built without MPI; install Open MPI (libopenmpi-dev) and build again");
}

}  // namespace muster::detail
