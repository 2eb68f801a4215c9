#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "muster/core/base/mutex.h"
#include "muster/parallel/nodes/elastic/membership_rules.h"

namespace muster {

/// The processes that want to train one model, and how they agree on the members of a generation, through a
/// store: the thread, the lock and the clock of MembershipRules. See README.md. One thread may call `next`
/// and `lost`.
class Membership {
 public:
  using Options = MembershipOptions;

  /// @throws NodeFailure if the store cannot be reached.
  Membership(NodeStore& store, Options options);
  /// Leaves the training: removes the card; the last process removes the other texts.
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  /// Ends the generation that this process is in, and waits for the next one.
  /// @param stopped  is called repeatedly; if it returns true, the wait ends.
  /// @return nothing if it was stopped.
  /// @throws InvalidArgument if `common` differs from that of the members;
  ///         NodeFailure if the others continue without this process, too few join, or the store is lost.
  std::optional<Generation> next(const std::function<bool()>& stopped);
  /// If `next` threw: the rank among the remaining processes; above 0 if others continue. If the store was
  /// lost: the number in the last generation; above 0 if this process was in none.
  int place() const {
    const Lock lock(mutex_);
    return rules_.place();
  }
  /// @throws NodeFailure if the others continue without this process; call it before the results are used.
  void requireCurrent() {
    const Lock lock(mutex_);
    rules_.requireCurrent(store_, Clock::now());
  }
  /// Records that this process cannot connect to `process`. If both record it, they are never in one
  /// generation.
  void lost(const std::string& process) {
    const Lock lock(mutex_);
    rules_.lost(process, Clock::now());
  }
  /// Whether the generation should end: a process wants to join it, which its node 0 notices, or the others
  /// have begun another one without this process.
  const std::atomic<bool>& joinRequested() const { return joinRequested_; }
  const std::string& process() const { return process_; }

 private:
  using Clock = MembershipRules::Clock;
  void beat(const std::stop_token& stop);

  NodeStore& store_;
  const Options options_;
  const std::string process_;

  mutable Mutex mutex_;  // both threads hold it, except in their pauses
  MembershipRules rules_ MUSTER_GUARDED_BY(mutex_);
  std::condition_variable_any changed_;

  std::atomic<bool> joinRequested_{false};
  std::jthread thread_;  // last: uses the members above
};

}  // namespace muster
