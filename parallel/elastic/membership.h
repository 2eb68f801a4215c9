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
  std::int64_t number = 0;           ///< from 1; every attempt to meet has one, so some are missing
  std::vector<std::string> members;  ///< [node] the processes, by the numbers that they have drawn
  int node = 0;                      ///< this process among them

  /// With what the names begin of all that they write to the store to connect.
  std::string meeting() const;
};

/// The processes that want to train one model, and how they agree on the members of a generation, by a
/// store. Each has a card there, `member-<process>`, and rewrites it regularly, so that others see that it is
/// alive; they compare what they read, not clocks. For generation n one process creates the lease
/// `lease-<n>`, looks which processes are alive, and creates the list `members-<n>`, by which all go on. If
/// it dies meanwhile, another one creates that list, empty, and the next lease is open. So there is one list
/// for each number: a process that was on one and is not on the next ends; after a network split one side
/// goes on.
///
/// `next` and `lost` are for one thread.
class Membership {
 public:
  /// What a training asks of its members.
  struct Options {
    int minNodes = 1;
    std::chrono::milliseconds silence{0};   ///< a process that has not written for half of it is gone
    std::chrono::milliseconds patience{0};  ///< for so many to come
    /// What all must have in common, a line for each thing.
    std::string common = {};
  };

  /// @throws NodeFailure if the store cannot be reached.
  Membership(NodeStore& store, Options options);
  /// Leaves: removes the card, and the last process removes the rest.
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  /// Ends the generation that this process is in, and waits for the next one.
  /// @param stopped  is asked again and again: true ends the waiting.
  /// @return nothing if it was stopped.
  /// @throws InvalidArgument if this process has something else in common than those that train;
  ///         NodeFailure if the others go on without this process, too few come, or the store is lost.
  std::optional<Generation> next(const std::function<bool()>& stopped);
  /// If `next` threw: the rank among the remaining processes; above 0 if others continue. If the store was
  /// lost: that in the last generation; above 0 if this process was in none.
  int place() const { return place_; }
  /// That process could not be connected. Where both say so they are in no generation together.
  void lost(const std::string& process);
  /// Whether a process wants to join the generation; known to its node 0.
  const std::atomic<bool>& knocked() const { return knocked_; }
  const std::string& process() const { return process_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Card {
    std::string common;     // a hash of it
    std::int64_t from = 0;  // the last generation that the process was in; 0: none
    bool ready = false;     // for another one
    std::set<std::string> lost;
  };
  struct Seen {
    Card card;
    std::string beat;
    Clock::time_point since, changed;  // since it was seen first, and since it was seen to change
    bool lives = false;                // it has changed, ever
  };
  struct List {
    std::vector<std::string> members;  // none: the attempt was given up
    std::string common;
  };
  struct Attempt {
    std::int64_t number = 0;
    Clock::time_point changed;  // which are ready
    std::vector<std::string> ready;
  };

  void writeCard();
  void look();
  void beat(const std::stop_token& stop);
  void lookForKnocks();
  bool isAlive(const std::string& process);
  bool isOpen(const std::string& process);
  std::int64_t latestLease();
  std::optional<List> listOf(std::int64_t number);
  void requireCommon(const List& list) const;
  bool openLease(std::int64_t number);
  void convene(std::int64_t number);
  std::vector<std::string> whoIsReady(bool& more);
  void publish(std::int64_t number, const std::vector<std::string>& members);
  std::optional<Generation> accept(std::int64_t number, const List& list);
  std::size_t count();

  NodeStore& store_;
  const Options options_;
  const std::string process_, hash_;

  // Held by both threads in all that they do here, but for their pauses: it guards all up to `changed_`.
  Mutex mutex_;
  Card card_;
  std::int64_t beats_ = 0;
  std::map<std::string, Seen> seen_;  // by process; not this one
  Generation generation_;             // the last one that this process was in
  std::condition_variable_any changed_;

  int place_ = 0;
  Attempt attempt_;                // that this process convenes
  Clock::time_point notBefore_{};  // it takes no lease
  std::atomic<bool> knocked_{false};
  std::jthread thread_;  // last
};

}  // namespace muster
