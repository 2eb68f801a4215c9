#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "muster/parallel/nodes/elastic/membership_rules.h"

namespace muster::test {

/// An access to the store, and its answer.
struct Access {
  enum class Kind { Put, Create, Get, Erase, Names, EraseAll };
  Kind kind = Kind::Get;
  std::string name, text;

  bool operator==(const Access&) const = default;
};
struct Answer {
  std::string of = {};  ///< the access's name
  bool failed = false;  ///< NodeFailure
  bool created = false;
  std::string text = {};
  std::vector<std::string> names = {};

  bool operator==(const Answer&) const = default;
};

/// What can happen next in a world.
struct Move {
  enum class Kind {
    Step,    ///< the process goes on to its next access to the store
    Crash,   ///< the process is killed
    Stop,    ///< the process is stopped
    Wake,    ///< it continues
    Lose,    ///< the process's next access is carried out, but it gets no answer
    Refuse,  ///< the process's next access is not carried out now, and gets no answer
    Late,    ///< such an access is carried out after all
    Tick     ///< time passes
  };
  Kind kind = Kind::Step;
  int process = 0;

  std::string text() const;
};

/// Three processes that train together over elastic nodes, with the real MembershipRules, a store in
/// memory and a clock that only moves when all running processes wait. Connections and rounds are simple
/// states here; what is real is everything that the processes agree on through the store. A value: copies go
/// on independently of each other.
class World {
 public:
  static constexpr int kProcesses = 3;
  static constexpr int kTicks = 10;  ///< in `silence`; a card is written in each
  static constexpr int kRounds = 4;  ///< of a training

  /// @param minNodes  of each process.  @param joins  [process] the tick at which it starts.
  World(int minNodes, std::array<int, kProcesses> joins);

  /// The moves that may happen now, first those without a fault.
  /// @param faults  whether faults may happen.
  std::vector<Move> moves(bool faults) const;
  /// @throws Violation if a promise is broken.
  void apply(const Move& move);
  /// The move of a schedule that is fair to all processes and has no further faults; none once all have
  /// ended.
  /// @param sleep  how many ticks a stopped process sleeps before it continues.
  std::optional<Move> fairMove(int sleep) const;
  static bool isFault(const Move& move);

  /// Two worlds with the same hash have the same future.
  std::uint64_t hash() const;
  bool ended() const;
  std::string describe() const;
  /// Where moves are written with what they do, for a report; null: nowhere.
  std::string* trace = nullptr;

  struct Violation {
    std::string what;
  };

 private:
  enum class Phase {
    Absent,
    Waiting,
    Meeting,
    Pairing,
    Greeting,
    Training,
    Confirming,
    Leaving,
    Ended,
    Crashed
  };
  enum class Call { None, Join, Beat, Begin, Next, Network, Confirm, Leave };
  struct Process {
    std::optional<MembershipRules> rules;  // as of the beginning of the call in progress
    Phase phase = Phase::Absent;
    Call call = Call::None;
    int calledAt = 0;                    // tick
    std::vector<Answer> answers;         // of the call in progress
    std::optional<Access> pending;       // next access of that call
    bool begun = false;                  // MembershipRules::begin was called
    bool beaten = false, acted = false;  // in this tick
    bool stopped = false, faulty = false;
    int since = 0;  // tick at which it was stopped, or has stopped to train
    int joins = 0;
    Generation generation;
    int list = 0;      // of that generation, in the order in which lists were created
    int phaseAt = 0;   // tick at which it began to meet, pair or greet
    int rounds = 0;    // committed, that its model holds
    int training = 0;  // the training that it takes part in; 0: none
  };
  /// The connection of a generation: its members meet in the store (Rendezvous), connect in pairs
  /// (connectPair), greet each other and take the model of the most advanced one (NodeLink), and train.
  struct Link {
    std::vector<std::string> members;
    std::set<int> met, agreed, pairing, greeted, contributed, done, gone;
    std::set<std::pair<int, int>> paired;  // the first is connected to the second
    std::map<int, int> heard;              // [process] tick
    bool open = false, complete = false;   // the session of the rendezvous
    bool begun = false, pause = false, paused = false;
    int training = 0;
    int rounds = 0;  // committed since the training began
  };

  class Replay;
  struct Paused {};
  Process& at(int p) { return processes_[static_cast<std::size_t>(p)]; }
  const Process& at(int p) const { return processes_[static_cast<std::size_t>(p)]; }
  MembershipRules::Time timeOf(int tick) const;
  bool over(const Process& process) const;
  bool runs(const Process& process) const { return !over(process) && !process.stopped; }
  Call due(const Process& process) const;
  void prepare(int p);
  void resume(int p);
  void finish(int p, MembershipRules rules, const std::optional<Generation>& generation, bool done);
  void fail(int p, MembershipRules rules);
  void network(int p);
  bool isGone(int p, const Link& link) const;
  void enter(int p, Phase phase);
  void meet(int p, Link& link);
  void pair(int p, Link& link);
  void greet(int p, Link& link);
  void train(int p, Link& link);
  void leaveLink(int p, Link& link);
  void endWell(int p);
  void endAll() const;
  void noteList(const Access& access);
  Answer carryOut(const Access& access);
  void fault(int p);
  void tick();
  std::string print(const Process& process) const;
  std::string normal(const std::string& name, const std::string& text) const;
  void require(bool holds, const std::string& what) const;

  int minNodes_;
  std::array<Process, kProcesses> processes_;
  std::map<std::string, std::string> store_;
  std::vector<Access> late_;
  std::map<std::string, int> lists_;  // [generation and members] its place in the order of lists
  std::map<int, Link> links_;         // [list]
  std::map<int, int> endedWell_;      // [training] the list of the processes that ended it
  int tick_ = 0, faultAt_ = 0;
  // No fault in the half silence and the tick before the last process left: one that is killed then still
  // counts as alive.
  bool cleanable_ = false;
  std::map<int, int> lastCommit_;  // [training] the latest list that has committed a round
  int trainings_ = 0;
};

}  // namespace muster::test
