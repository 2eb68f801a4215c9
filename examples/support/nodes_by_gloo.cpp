#include "examples/support/nodes.h"

namespace example {

muster::Nodes nodesByGloo(const muster::Nodes::Gloo& options) {
  return muster::Nodes::gloo(options);
}

muster::Nodes elasticNodes(const muster::Nodes::Elastic& options) {
  return muster::Nodes::elastic(options);
}

}  // namespace example
