#include "muster/core/nn/detail/network_probe.h"

#include "muster/core/base/error.h"
#include "muster/core/nn/detail/network_impl.h"

namespace muster::detail {

NetworkPlan NetworkProbe::layOut(const Network& network) {
  for (const auto& input : network.inputs())
    require(!input.shape.empty(), "network: {} has no shape", input.name);
  return network.layOut();
}

const NetworkPlan& NetworkProbe::planOf(const Network& network) {
  return network.impl_->plan;
}

void NetworkProbe::setEnqueuedSteps(Network& network, bool enqueued) {
  require(enqueued || network.context().device().isCpu(), "network: on {} steps are always enqueued",
          network.context().device().toString());
  network.impl_->programs.finish();
  network.impl_->enqueuesSteps = enqueued;
}

StepCounts NetworkProbe::stepCounts(const Network& network) {
  return network.impl_->programs.counts();
}

std::size_t NetworkProbe::activationBytes(const Network& network) {
  return network.impl_->programs.bytes();
}

}  // namespace muster::detail
