#include "muster/parallel/gloo/gloo_transport.h"
#include "muster/parallel/nodes.h"

namespace muster {

Nodes Nodes::gloo(const Gloo& options) {
  return Nodes([options] { return makeGlooTransport(options); }, options.silence);
}

}  // namespace muster
