#include "muster/core/base/error.h"
#include "muster/parallel/run/detail/node_options.h"

namespace muster::detail {
namespace {

[[noreturn]] void refuse() {
  throw InvalidArgument(
      "MUSTER_STORE: this muster was built without Gloo; install libgloo-dev and build again");
}

}  // namespace

Nodes nodesByGloo(const Nodes::Gloo&) {
  refuse();
}

Nodes elasticNodes(const Nodes::Elastic&) {
  refuse();
}

}  // namespace muster::detail
