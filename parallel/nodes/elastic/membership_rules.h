#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/parallel/nodes/elastic/member_list.h"
#include "muster/parallel/nodes/elastic/roster.h"

namespace muster {

/// The processes that train together until one is lost or another one joins.
struct Generation {
  std::int64_t number = 0;           ///< from 1; every attempt takes a number, so some are missing
  std::vector<std::string> members;  ///< [node] the processes, by their random numbers
  int node = 0;                      ///< number of this process among them

  /// The prefix of the names of all texts that the members write to the store to connect.
  std::string rendezvous() const;
};

/// What a training requires of its members.
struct MembershipOptions {
  int minNodes = 1;
  std::chrono::milliseconds silence{0};   ///< a process that has not written for half of this time is dead
  std::chrono::milliseconds patience{0};  ///< how long to wait for `minNodes`
  /// What all members must have in common: a line for each item, each ended by "\n", also the last.
  std::string common = {};
};

/// What one process reads and writes in the store to agree on the members of a generation, and what it
/// concludes. A value without thread and clock. Each call makes its decisions from one look at the store, at
/// the given time, however long the call takes: a process that is stopped meanwhile must not take the others
/// for dead when it continues. All members throw NodeFailure if the store cannot be reached.
class MembershipRules {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  /// @param process  a number that no other process has.
  MembershipRules(std::string process, MembershipOptions options);

  /// Shows the others that this process is alive, and looks for processes that want to join, and for a
  /// generation without this process. Call it often enough that `silence / 2` never passes in between.
  void beat(NodeStore& store, Time now);
  /// Ends the generation that this process is in; `tryNext` follows, again and again.
  void begin(NodeStore& store, Time now);
  /// @return the next generation once it has begun. @throws as Membership::next.
  std::optional<Generation> tryNext(NodeStore& store, Time now);
  /// Records that this process could not connect to `process` in its generation, unless it was stopped itself
  /// for so long that the other one may have given it up.
  void lost(const std::string& process, Time now);
  /// @throws NodeFailure if the others have begun a generation without this process.
  void requireCurrent(NodeStore& store, Time now);
  /// Leaves the training: removes the card; the last process removes the other texts. Repeat it.
  /// @return false if it is not known yet whether other processes are alive.
  bool tryLeave(NodeStore& store, Time now);

  int place() const { return place_; }
  bool joinRequested() const { return joinRequested_; }
  const std::string& process() const { return roster_.process(); }
  const MembershipOptions& options() const { return options_; }

 private:
  friend struct MembershipPrint;  // of the simulation
  struct Attempt {
    std::int64_t number = 0;
    Time changed;  // time of the last change of `ready`
    std::vector<std::string> ready;
  };

  void noteTime(Time now);
  bool isOver(NodeStore& store) const;
  bool isLeftOut(NodeStore& store) const;
  [[noreturn]] void throwLeftOut();
  bool openLease(NodeStore& store, std::int64_t number);
  /// The work of a lease's holder: finds the living processes and writes the list.
  void convene(NodeStore& store, std::int64_t number);
  Generation accept(NodeStore& store, std::int64_t number, const MemberList& list);
  [[noreturn]] void giveUp(NodeStore& store);

  const MembershipOptions options_;
  Roster roster_;
  Generation generation_;  // the last generation of this process
  Attempt attempt_;        // this process's attempt to form a generation
  Time notBefore_{};       // this process takes no lease before this time
  Time end_{};             // of the wait for the next generation
  Time lastCall_{};
  bool slept_ = false;  // since it joined its generation, others may have taken this process for dead
  bool leaving_ = false, joinRequested_ = false;
  int place_ = 0;
};

}  // namespace muster
