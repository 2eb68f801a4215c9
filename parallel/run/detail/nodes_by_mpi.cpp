#include "muster/parallel/run/detail/node_options.h"

namespace muster::detail {

Nodes launchedNodes() {
  return Nodes::mpi();
}

Nodes nodesByMpi() {
  return Nodes::mpi();
}

}  // namespace muster::detail
