#pragma once

#include <chrono>
#include <span>

#include "muster/core/data/batch.h"
#include "muster/core/device/peers.h"
#include "muster/parallel/runtime/peer_sums.h"
#include "muster/parallel/runtime/replica_thread.h"

namespace muster {

/// While an object of this class lives, the layers of a replica add up numbers with the other workers'
/// layers.
class StepPeers final : public Peers {
 public:
  /// Who else trains.
  struct Others {
    bool none = false;  ///< the worker is alone
    bool overNodes = false;
    bool arrive = false;  ///< one at a time: never in the same step
  };
  /// @param local  the worker, among those of this node. @param current  the batch in progress.
  /// @param waited  the time spent waiting is added to it.
  StepPeers(ReplicaThread& thread, int local, PeerSums& sums, const Others& others, const BatchStamp& current,
            std::chrono::nanoseconds& waited);
  ~StepPeers() override { thread_.context().setPeers(nullptr); }
  StepPeers(const StepPeers&) = delete;
  StepPeers& operator=(const StepPeers&) = delete;

  void sum(std::span<double> values) override;

 private:
  ReplicaThread& thread_;
  const int local_;
  PeerSums& sums_;
  const Others others_;
  const BatchStamp& current_;
  std::chrono::nanoseconds& waited_;
};

}  // namespace muster
