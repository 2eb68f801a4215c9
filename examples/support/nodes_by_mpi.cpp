#include "examples/support/nodes.h"

namespace example {

muster::Nodes launchedNodes() {
  return muster::Nodes::mpi();
}

}  // namespace example
