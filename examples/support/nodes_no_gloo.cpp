#include "examples/support/nodes.h"
#include "muster/core/base/error.h"

namespace example {

muster::Nodes nodesByGloo(const muster::Nodes::Gloo&) {
  throw muster::InvalidArgument(
      "--store: this program was built without Gloo; `./run nodes --gloo` installs it (libgloo-dev)");
}

}  // namespace example
