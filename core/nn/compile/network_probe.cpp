#include "muster/core/nn/compile/network_probe.h"

#include "muster/core/base/error.h"

namespace muster::detail {

NetworkPlan NetworkProbe::layOut(const Network& network) {
  for (const auto& input : network.inputs())
    require(!input.shape.empty(), "network: {} has no shape", input.name);
  return network.layOut();
}

}  // namespace muster::detail
