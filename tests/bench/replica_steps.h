#pragma once

#include <vector>

#include "muster/core/nn/network.h"
#include "muster/parallel/training/internals.h"
#include "tests/support/network_probe.h"

namespace muster::bench {

/// How the steps of a wrapper's replicas ran.
class ReplicaSteps {
 public:
  ReplicaSteps() = default;
  ReplicaSteps(const ReplicaSteps&) = delete;
  ReplicaSteps& operator=(const ReplicaSteps&) = delete;

  /// For the wrapper's builder. The object must outlive the wrapper.
  muster::detail::Internals internals() {
    return {.replicaMade = [this](const Model& replica) {
      replicas_.push_back(&dynamic_cast<const Network&>(replica));
    }};
  }
  /// Call it while the wrapper lives and does not train.
  muster::detail::StepCounts counts() const {
    muster::detail::StepCounts counts;
    for (const Network* replica : replicas_) counts += muster::test::stepCounts(*replica);
    return counts;
  }

 private:
  std::vector<const Network*> replicas_;
};

}  // namespace muster::bench
