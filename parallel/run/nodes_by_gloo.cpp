#include "muster/parallel/run/node_options.h"

namespace muster {

Nodes nodesByGloo(const Nodes::Gloo& options) {
  return Nodes::gloo(options);
}

Nodes elasticNodes(const Nodes::Elastic& options) {
  return Nodes::elastic(options);
}

}  // namespace muster
