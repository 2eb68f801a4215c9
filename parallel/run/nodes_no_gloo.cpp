#include "muster/core/base/error.h"
#include "muster/parallel/run/node_options.h"

namespace muster {
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

}  // namespace muster
