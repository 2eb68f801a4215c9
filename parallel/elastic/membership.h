#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "muster/core/base/mutex.h"
#include "muster/parallel/elastic/node_store.h"

namespace muster {

/// The processes that train together until one is lost or another one joins.
struct Generation {
  std::int64_t number = 0;           ///< from 1; every attempt takes a number, so some are missing
  std::vector<std::string> members;  ///< [node] the processes, by their random numbers
  int node = 0;                      ///< number of this process among them

  /// The prefix of the names of all texts that the members write to the store to connect.
  std::string rendezvous() const;
};

/// The processes that want to train one model, and how they agree on the members of a generation, through a
/// store. Each process has a card there, `member-<process>`, and rewrites it regularly, so that others see
/// that it is alive; they compare contents, not clocks. For generation n one process creates the lease
/// `lease-<n>`, finds the living processes, and creates the list `members-<n>` of those that train. If it
/// dies before that, another process creates the list, empty, and the next lease is open. So there is one
/// list for each number: a process that was on one list and is not on the next ends; after a network split
/// one side continues.
///
/// One thread may call `next` and `lost`.
class Membership {
 public:
  /// What a training requires of its members.
  struct Options {
    int minNodes = 1;
    std::chrono::milliseconds silence{0};   ///< a process that has not written for half of this time is dead
    std::chrono::milliseconds patience{0};  ///< how long to wait for `minNodes`
    /// What all members must have in common, one line for each item.
    std::string common = {};
  };

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
  int place() const { return place_; }
  /// Records that this process cannot connect to `process`. If both record it, they are never in one
  /// generation.
  void lost(const std::string& process);
  /// Whether a process wants to join the generation; only set on its node 0.
  const std::atomic<bool>& knocked() const { return knocked_; }
  const std::string& process() const { return process_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Card {
    std::string common;     // hash of Options::common
    std::int64_t from = 0;  // the last generation that the process was in; 0: none
    bool ready = false;     // for another generation
    std::set<std::string> lost;
  };
  struct Seen {
    Card card;
    std::string beat;
    Clock::time_point since, changed;  // time of the first look, and of the last change
    bool lives = false;                // whether the card has ever changed
  };
  struct List {
    std::vector<std::string> members;  // none: the attempt has failed
    std::string common;
  };
  struct Attempt {
    std::int64_t number = 0;
    Clock::time_point changed;  // time of the last change of `ready`
    std::vector<std::string> ready;
  };

  void writeCard() MUSTER_REQUIRES(mutex_);
  void look() MUSTER_REQUIRES(mutex_);
  void beat(const std::stop_token& stop);
  void lookForKnocks() MUSTER_REQUIRES(mutex_);
  bool isAlive(const std::string& process) MUSTER_REQUIRES(mutex_);
  bool isOpen(const std::string& process) MUSTER_REQUIRES(mutex_);
  std::int64_t latestLease();
  std::optional<List> listOf(std::int64_t number);
  void requireCommon(const List& list) const;
  bool openLease(std::int64_t number) MUSTER_REQUIRES(mutex_);
  void convene(std::int64_t number) MUSTER_REQUIRES(mutex_);
  std::vector<std::string> readyProcesses(bool& more) MUSTER_REQUIRES(mutex_);
  void publish(std::int64_t number, const std::vector<std::string>& members) MUSTER_REQUIRES(mutex_);
  std::optional<Generation> accept(std::int64_t number, const List& list) MUSTER_REQUIRES(mutex_);
  std::size_t count() MUSTER_REQUIRES(mutex_);

  NodeStore& store_;
  const Options options_;
  const std::string process_, hash_;

  Mutex mutex_;  // both threads hold it, except in their pauses
  Card card_ MUSTER_GUARDED_BY(mutex_);
  std::int64_t beats_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Seen> seen_ MUSTER_GUARDED_BY(mutex_);  // [process] except this one
  Generation generation_ MUSTER_GUARDED_BY(mutex_);             // the last generation of this process
  std::condition_variable_any changed_;

  int place_ = 0;
  Attempt attempt_;                // this process's attempt to form a generation
  Clock::time_point notBefore_{};  // this process takes no lease before this time
  std::atomic<bool> knocked_{false};
  std::jthread thread_;  // last: uses the members above
};

}  // namespace muster
