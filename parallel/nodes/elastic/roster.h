#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/parallel/nodes/elastic/node_store.h"

namespace muster {

/// What a process announces to the others, in its text in the store.
struct MemberCard {
  std::string common;                        ///< hash of MembershipOptions::common
  std::int64_t from = 0;                     ///< the last generation that the process was in; 0: none
  bool ready = false;                        ///< for another generation
  std::map<std::string, std::int64_t> lost;  ///< [process] the generation in which it could not be reached

  /// @param beat  counts how often the process has written it.
  std::string text(std::int64_t beat) const;
  /// @param beat  receives that number. @return nothing if the text is no card.
  static std::optional<MemberCard> parse(const std::string& text, std::string& beat);
};

/// The processes that want to train one model, as one of them sees them: its own card, those of the others,
/// and which of these change and so are of living processes. A value without a clock.
class Roster {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// @param common  what all must have in common. @param patience  after which a card that does not change is
  ///                of a dead process.
  Roster(std::string process, std::string_view common, std::chrono::milliseconds patience);

  const std::string& process() const { return process_; }
  MemberCard& own() { return own_; }
  const MemberCard& own() const { return own_; }
  /// Writes the own card: this process is alive.
  void write(NodeStore& store);
  bool written() const { return beats_ > 0; }

  void refresh(NodeStore& store, Time now);
  void forget() { seen_.clear(); }
  Time time() const { return seenAt_; }
  bool isAlive(const std::string& process) const { return lifeOf(process) == Life::Alive; }
  /// True while it is unknown whether the process is alive: it has shown no sign of life, but this process
  /// has watched it only for a short time.
  bool isOpen(const std::string& process) const { return lifeOf(process) == Life::Open; }
  bool anyAlive() const { return !withLife(Life::Alive).empty(); }
  bool anyOpen() const { return !withLife(Life::Open).empty(); }
  std::vector<std::string> dead() const { return withLife(Life::Dead); }
  /// Whether a process of an earlier generation, with the same `common`, is not known to be dead.
  bool anyTrains() const;
  /// Whether a newcomer that is alive waits to join. Of members, the store may still have the cards from
  /// before they were members.
  bool anyJoins(const std::vector<std::string>& members) const;
  /// The number of processes that could take part, including this one.
  std::size_t count() const;
  /// The processes that are ready: those of the last generation in order, then the others, newcomers last.
  /// @param before  the members of the last generation.
  /// @param more  set to true if some are alive and not ready yet, or not watched for long enough.
  std::vector<std::string> ready(const std::vector<std::string>& before, bool& more) const;
  /// Both say that they could not reach each other in the same generation. One that says so alone has met a
  /// process that was dead or stopped for a time.
  bool areApart(const std::string& one, const std::string& other) const {
    return lostBy(one, other) > 0 && lostBy(one, other) == lostBy(other, one);
  }
  /// This process and those of `ready` that are apart from none before them, in the order of `ready`.
  std::vector<std::string> together(const std::vector<std::string>& ready) const;

 private:
  friend struct MembershipPrint;  // of the simulation
  struct Seen {
    MemberCard card;
    std::string beat;
    Time since, changed;  // time of the first refresh, and of the last change
    bool lives = false;   // whether the card has ever changed
  };
  enum class Life { Unknown, Open, Alive, Dead };
  Life lifeOf(const std::string& process) const;
  /// The other processes of which this is known.
  std::vector<std::string> withLife(Life life) const;
  bool isReady(const std::string& process, const Seen& seen) const {
    return seen.card.common == own_.common && seen.card.ready && isAlive(process);
  }
  std::int64_t lostBy(const std::string& process, const std::string& lost) const;

  std::string process_;
  std::chrono::milliseconds patience_;
  MemberCard own_;
  std::int64_t beats_ = 0;
  std::map<std::string, Seen> seen_;  // [process] except this one
  Time seenAt_;                       // when `seen_` was read
};

}  // namespace muster
