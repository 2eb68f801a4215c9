#include "muster/parallel/training/step_peers.h"

#include "muster/core/base/error.h"
#include "muster/parallel/runtime/phase.h"

namespace muster {

StepPeers::StepPeers(ReplicaThread& thread, int local, PeerSums& sums, const Others& others,
                     const BatchStamp& current, std::chrono::nanoseconds& waited)
    : thread_(thread), local_(local), sums_(sums), others_(others), current_(current), waited_(waited) {
  thread_.context().setPeers(others.none ? nullptr : this);
}

void StepPeers::sum(std::span<double> values) {
  require(!others_.arrive,
          "a layer adds up numbers between workers (synchronised batch normalisation), but with asynchronous "
          "arrivals they are never in the same step");
  require(!others_.overNodes,
          "a layer adds up numbers between workers (synchronised batch normalisation), which is not "
          "supported over nodes yet");
  {
    const Phase waiting(thread_.activity(), Activity::Kind::InExchange, waited_, current_.sequence);
    sums_.sum(local_, values);
  }
  thread_.activity().set(Activity::Kind::Computing, current_.sequence);
}

}  // namespace muster
