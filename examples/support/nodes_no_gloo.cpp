#include "examples/support/nodes.h"
#include "muster/core/base/error.h"

namespace example {
namespace {

[[noreturn]] void refuse() {
  throw muster::InvalidArgument(
      "--store: this program was built without Gloo; `./run nodes --gloo` installs it (libgloo-dev)");
}

}  // namespace

muster::Nodes nodesByGloo(const muster::Nodes::Gloo&) {
  refuse();
}

muster::Nodes elasticNodes(const muster::Nodes::Elastic&) {
  refuse();
}

}  // namespace example
