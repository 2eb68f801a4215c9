#include "muster/parallel/run/detail/node_options.h"

namespace muster::detail {

Nodes nodesByGloo(const Nodes::Gloo& options) {
  return Nodes::gloo(options);
}

Nodes elasticNodes(const Nodes::Elastic& options) {
  return Nodes::elastic(options);
}

}  // namespace muster::detail
