#include "examples/support/nodes.h"

namespace example {

muster::Nodes nodesByGloo(const muster::Nodes::Gloo& options) {
  return muster::Nodes::gloo(options);
}

}  // namespace example
