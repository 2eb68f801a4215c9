#include "muster/core/base/error.h"
#include "muster/parallel/run/detail/node_options.h"

namespace muster::detail {
namespace {

[[noreturn]] void refuse() {
  throw InvalidArgument(
      "--store: this program was built without Gloo; `./run nodes --gloo` installs it (libgloo-dev)");
}

}  // namespace

Nodes nodesByGloo(const Nodes::Gloo&) {
  refuse();
}

Nodes elasticNodes(const Nodes::Elastic&) {
  refuse();
}

}  // namespace muster::detail
