#include "examples/support/nodes.h"

namespace example {

muster::Nodes launchedNodes() {
  return muster::Nodes::mpi();
}

muster::Nodes nodesByMpi() {
  return muster::Nodes::mpi();
}

}  // namespace example
