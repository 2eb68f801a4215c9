#include "examples/support/nodes.h"

namespace example {

muster::Nodes nodesByMpi() {
  return muster::Nodes::mpi();
}

}  // namespace example
