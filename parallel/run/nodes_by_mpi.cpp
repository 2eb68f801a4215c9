#include "muster/parallel/run/node_options.h"

namespace muster {

Nodes launchedNodes() {
  return Nodes::mpi();
}

Nodes nodesByMpi() {
  return Nodes::mpi();
}

}  // namespace muster
