#include "tests/parallel/nodes/elastic/membership_world.h"

#include <algorithm>
#include <sstream>

#include <fmt/ranges.h>

#include "muster/parallel/nodes/node_transport.h"

namespace muster {
namespace {

/// The values as text, each followed by a blank; containers of fmt/ranges, too.
template <typename... T>
std::string words(const T&... all) {
  std::string text;
  (fmt::format_to(std::back_inserter(text), "{} ", all), ...);
  return text;
}

}  // namespace

/// The state of the rules, with times relative to `now`.
struct MembershipPrint {
  static std::string age(MembershipRules::Time time, MembershipRules::Time now) {
    const auto ticks = (now - time) / std::chrono::milliseconds(100);
    return std::to_string(std::clamp<std::int64_t>(ticks, -50, 50));
  }
  static std::int64_t beats(const MembershipRules& rules) { return rules.roster_.beats_; }
  template <typename Normal>
  static std::string of(const MembershipRules& r, MembershipRules::Time now, Normal normal) {
    const Roster& all = r.roster_;
    auto text = words(all.own_.from, all.own_.ready, all.own_.lost, age(all.seenAt_, now));
    for (const auto& [process, seen] : all.seen_)
      text += words(process, seen.card.from, seen.card.ready, seen.card.lost, normal(process, seen.beat),
                    age(seen.since, now), age(seen.changed, now), seen.lives);
    return text + words(r.generation_.number, r.generation_.members, r.generation_.node, r.attempt_.number,
                        age(r.attempt_.changed, now), r.attempt_.ready, age(r.notBefore_, now),
                        age(r.end_, now), r.leaving_, r.joinRequested_, r.slept_, age(r.lastCall_, now));
  }
};

namespace test {
namespace {

using namespace std::chrono_literals;

constexpr auto kTick = 100ms;
constexpr int kPatience = 4 * World::kTicks;
/// Once it is quiet, every living process trains on or ends within this time.
constexpr int kBound = 4 * World::kTicks;

std::string nameOf(int p) {
  return std::string(1, static_cast<char>('a' + p));
}
int processOf(const std::string& name) {
  return name.front() - 'a';
}

}  // namespace

std::string Move::text() const {
  const char* const words[] = {"goes on",         "is killed",  "is stopped",  "wakes up",
                               "loses an answer", "is refused", "late access", "time passes"};
  return fmt::format("{} {}", kind == Kind::Tick ? "-" : nameOf(process),
                     words[static_cast<std::size_t>(kind)]);
}

/// Gives the recorded answers again, and ends the call at the first access that has none.
class World::Replay final : public NodeStore {
 public:
  explicit Replay(const std::vector<Answer>& answers) : answers_(answers) {}
  std::string describe() const override { return "the store"; }
  void put(const std::string& name, const std::string& text) override {
    ask({Access::Kind::Put, name, text});
  }
  bool create(const std::string& name, const std::string& text) override {
    return ask({Access::Kind::Create, name, text}).created;
  }
  std::string get(const std::string& name) override { return ask({Access::Kind::Get, name, {}}).text; }
  void erase(const std::string& name) override { ask({Access::Kind::Erase, name, {}}); }
  std::vector<std::string> names(const std::string& prefix) override {
    return ask({Access::Kind::Names, prefix, {}}).names;
  }
  void eraseAll(const std::string& prefix) override { ask({Access::Kind::EraseAll, prefix, {}}); }
  const std::optional<Access>& pending() const { return pending_; }

 private:
  const Answer& ask(Access access) {
    if (next_ == answers_.size()) {
      pending_ = std::move(access);
      throw Paused{};
    }
    const Answer& answer = answers_[next_++];
    if (answer.failed) throw NodeFailure("the store cannot be reached");
    return answer;
  }

  const std::vector<Answer>& answers_;
  std::size_t next_ = 0;
  std::optional<Access> pending_;
};

World::World(int minNodes, std::array<int, kProcesses> joins) : minNodes_(minNodes) {
  for (int p = 0; p < kProcesses; ++p) at(p).joins = joins[static_cast<std::size_t>(p)];
}

MembershipRules::Time World::timeOf(int tick) const {
  return MembershipRules::Time(std::chrono::hours(1) + tick * kTick);
}

bool World::over(const Process& process) const {
  return process.phase == Phase::Ended || process.phase == Phase::Crashed;
}

bool World::ended() const {
  return std::ranges::all_of(processes_, [this](const Process& p) { return over(p); });
}

World::Call World::due(const Process& process) const {
  switch (process.phase) {
    case Phase::Absent:
      return tick_ >= process.joins ? Call::Join : Call::None;
    case Phase::Leaving:
      return process.acted ? Call::None : Call::Leave;
    case Phase::Confirming:
      return Call::Confirm;
    case Phase::Waiting:
      if (!process.begun) return Call::Begin;
      if (!process.beaten) return Call::Beat;
      return process.acted ? Call::None : Call::Next;
    case Phase::Meeting:
    case Phase::Pairing:
    case Phase::Greeting:
    case Phase::Training:
      if (!process.beaten) return Call::Beat;
      return process.acted ? Call::None : Call::Network;
    default:
      return Call::None;
  }
}

bool World::isFault(const Move& move) {
  return move.kind == Move::Kind::Crash || move.kind == Move::Kind::Stop || move.kind == Move::Kind::Lose ||
         move.kind == Move::Kind::Refuse;
}

std::vector<Move> World::moves(bool faults) const {
  std::vector<Move> all;
  bool idle = true;
  for (int p = 0; p < kProcesses; ++p) {
    const Process& process = at(p);
    if (!runs(process) || (process.call == Call::None && due(process) == Call::None)) continue;
    idle = false;
    all.push_back({Move::Kind::Step, p});
  }
  if (idle && !ended()) all.push_back({Move::Kind::Tick, 0});
  for (int p = 0; p < kProcesses; ++p)
    if (at(p).stopped) all.push_back({Move::Kind::Wake, p});
  for (std::size_t i = 0; i < late_.size(); ++i) all.push_back({Move::Kind::Late, static_cast<int>(i)});
  if (!faults) return all;
  for (int p = 0; p < kProcesses; ++p) {
    const Process& process = at(p);
    if (over(process) || process.phase == Phase::Absent) continue;
    all.push_back({Move::Kind::Crash, p});
    if (process.stopped) continue;
    all.push_back({Move::Kind::Stop, p});
    const auto next = process.call == Call::None ? due(process) : process.call;
    if (next == Call::None || next == Call::Network) continue;
    all.push_back({Move::Kind::Lose, p});
    all.push_back({Move::Kind::Refuse, p});
  }
  return all;
}

std::optional<Move> World::fairMove(int sleep) const {
  for (int p = 0; p < kProcesses; ++p)
    if (at(p).stopped && !over(at(p)) && tick_ - at(p).since >= sleep) return Move{Move::Kind::Wake, p};
  if (!late_.empty()) return Move{Move::Kind::Late, 0};
  for (const Move& move : moves(false))
    if (move.kind != Move::Kind::Wake) return move;
  return {};
}

void World::apply(const Move& move) {
  const int p = move.process;
  if (trace) *trace += fmt::format("\n  {} {}", tick_, move.text());
  switch (move.kind) {
    case Move::Kind::Tick:
      return tick();
    case Move::Kind::Late: {
      const Access access = late_[static_cast<std::size_t>(p)];
      late_.erase(late_.begin() + p);
      cleanable_ = false;
      faultAt_ = tick_;
      carryOut(access);
      return;
    }
    case Move::Kind::Crash:
      fault(p);
      at(p).phase = Phase::Crashed;
      at(p).stopped = false;
      at(p).call = Call::None;
      at(p).pending.reset();
      break;
    case Move::Kind::Stop:
      fault(p);
      at(p).stopped = true;
      at(p).since = tick_;
      return;
    case Move::Kind::Wake:
      at(p).stopped = false;
      at(p).since = faultAt_ = tick_;
      return;
    case Move::Kind::Lose:
    case Move::Kind::Refuse:
      fault(p);
      prepare(p);
      if (move.kind == Move::Kind::Lose)
        carryOut(*at(p).pending);
      else if (const auto kind = at(p).pending->kind;
               kind != Access::Kind::Get && kind != Access::Kind::Names)
        late_.push_back(*at(p).pending);
      at(p).answers.push_back({.of = at(p).pending->name, .failed = true});
      resume(p);
      break;
    case Move::Kind::Step:
      prepare(p);
      if (at(p).call == Call::Network) {
        at(p).call = Call::None;
        network(p);
        break;
      }
      at(p).answers.push_back(carryOut(*at(p).pending));
      resume(p);
      break;
  }
  if (ended()) endAll();
}

void World::fault(int p) {
  at(p).faulty = true;
  faultAt_ = tick_;
  cleanable_ = false;
}

/// Begins the call that is due, up to its first access.
void World::prepare(int p) {
  Process& process = at(p);
  if (process.call != Call::None) return;
  process.call = due(process);
  process.calledAt = tick_;
  process.answers.clear();
  if (process.call == Call::Network) return;
  if (process.call == Call::Join) {
    process.rules.emplace(
        nameOf(p),
        MembershipOptions{.minNodes = minNodes_, .silence = kTicks * kTick, .patience = kPatience * kTick});
    process.since = tick_;
  }
  if (process.call == Call::Leave) cleanable_ = tick_ - faultAt_ > kTicks / 2;
  resume(p);
}

/// Runs the call from its beginning with the answers that it has got, up to its next access.
void World::resume(int p) {
  Process& process = at(p);
  Replay store(process.answers);
  MembershipRules rules = *process.rules;
  const auto now = timeOf(process.calledAt);
  std::optional<Generation> generation;
  bool done = true;
  try {
    switch (process.call) {
      case Call::Join:
      case Call::Beat:
        rules.beat(store, now);
        break;
      case Call::Begin:
        rules.begin(store, now);
        break;
      case Call::Next:
        generation = rules.tryNext(store, now);
        break;
      case Call::Confirm:
        rules.requireCurrent(store, now);
        break;
      case Call::Leave:
        done = rules.tryLeave(store, now);
        break;
      default:
        break;
    }
  } catch (const Paused&) {
    process.pending = store.pending();
    return;
  } catch (const NodeFailure&) {
    return fail(p, std::move(rules));
  }
  finish(p, std::move(rules), generation, done);
}

void World::finish(int p, MembershipRules rules, const std::optional<Generation>& generation, bool done) {
  Process& process = at(p);
  process.rules.emplace(std::move(rules));
  process.pending.reset();
  switch (std::exchange(process.call, Call::None)) {
    case Call::Join:
      process.phase = Phase::Waiting;
      process.beaten = true;
      break;
    case Call::Beat:
      process.beaten = true;
      break;
    case Call::Begin:
      process.begun = true;
      break;
    case Call::Next: {
      process.acted = true;
      if (!generation) break;
      process.generation = *generation;
      enter(p, Phase::Meeting);
      process.list = lists_.at(fmt::format("{} {}", generation->number, fmt::join(generation->members, " ")));
      links_[process.list].members = generation->members;
      break;
    }
    case Call::Confirm:
      endWell(p);
      break;
    case Call::Leave:
      process.acted = true;
      if (done) process.phase = Phase::Ended;
      break;
    default:
      break;
  }
}

/// The store could not be reached, or the others continue without this process.
void World::fail(int p, MembershipRules rules) {
  Process& process = at(p);
  process.rules.emplace(std::move(rules));
  process.pending.reset();
  const auto call = std::exchange(process.call, Call::None);
  if (call == Call::Beat) {
    process.beaten = true;
  } else if (call == Call::Leave || call == Call::Join) {
    process.phase = Phase::Ended;
  } else {
    process.phase = Phase::Leaving;
    process.acted = false;
    process.since = tick_;
  }
}

void World::network(int p) {
  Link& link = links_.at(at(p).list);
  at(p).acted = true;
  switch (at(p).phase) {
    case Phase::Meeting:
      return meet(p, link);
    case Phase::Pairing:
      return pair(p, link);
    case Phase::Greeting:
      return greet(p, link);
    default:
      return train(p, link);
  }
}

void World::enter(int p, Phase phase) {
  at(p).phase = phase;
  at(p).phaseAt = tick_;
}

bool World::isGone(int p, const Link& link) const {
  return at(p).phase == Phase::Crashed || link.gone.contains(p);
}

/// Rendezvous::awaitAll: node 0 opens a session once it sees all, and completes it once all have agreed.
void World::meet(int p, Link& link) {
  link.met.insert(p);
  if (link.members.front() == nameOf(p)) {
    link.open = link.open || link.met.size() == link.members.size();
    link.complete =
        link.open && link.met.size() == link.members.size() && link.agreed.size() + 1 == link.members.size();
  } else if (link.open) {
    link.agreed.insert(p);
  }
  if (link.complete) return enter(p, Phase::Pairing);
  if (tick_ - at(p).phaseAt <= kTicks) return;
  link.met.erase(p);  // with its texts, which the others need
  link.agreed.erase(p);
  if (link.members.front() == nameOf(p)) link.open = false;
  leaveLink(p, link);
}

/// connectPair, for all others at once: a pair needs both to run at the same time. If one of them knows that
/// the pair is connected, the other one will, unless the first one has left.
void World::pair(int p, Link& link) {
  link.pairing.insert(p);
  std::vector<std::string> missing;
  for (const auto& one : link.members) {
    const int other = processOf(one);
    if (other == p || link.paired.contains({p, other})) continue;
    const bool answers =
        link.paired.contains({other, p}) ||
        (runs(at(other)) && at(other).phase == Phase::Pairing && link.pairing.contains(other));
    if (answers && !isGone(other, link))
      link.paired.insert({p, other});
    else
      missing.push_back(one);
  }
  if (missing.empty()) return enter(p, Phase::Greeting);
  if (tick_ - at(p).phaseAt <= kTicks) return;
  for (const auto& one : missing) at(p).rules->lost(one, timeOf(tick_));
  if (link.members.front() == nameOf(p)) link.open = link.complete = false;  // it removes its texts
  leaveLink(p, link);
}

/// NodeLink::greet and shareModel, which need all members.
void World::greet(int p, Link& link) {
  Process& process = at(p);
  link.greeted.insert(p);
  link.heard[p] = tick_;
  const bool whole = std::ranges::none_of(
      link.members, [&](const std::string& one) { return isGone(processOf(one), link); });
  if (!whole) return leaveLink(p, link);
  if (link.greeted.size() < link.members.size()) {
    if (tick_ - process.phaseAt > kTicks) leaveLink(p, link);
    return;
  }
  if (!std::exchange(link.begun, true)) {
    for (const auto& one : link.members)
      if (const Process& member = at(processOf(one)); member.training > 0) {
        link.rounds = std::max(link.rounds, member.rounds);
        link.training = std::max(link.training, member.training);
      }
    if (link.training == 0) link.training = ++trainings_;
  }
  process.rounds = link.rounds;
  process.training = link.training;
  enter(p, Phase::Training);
}

/// A round is committed when all members have contributed to it; each knows that at its next step.
void World::train(int p, Link& link) {
  Process& process = at(p);
  if (tick_ - link.heard[p] > kTicks / 2)  // it was stopped itself
    for (auto& [other, heard] : link.heard) heard = tick_;
  link.heard[p] = tick_;
  bool broken = false;
  for (const auto& one : link.members) {
    const int other = processOf(one);
    broken = broken || isGone(other, link) || tick_ - link.heard[other] > kTicks;
  }
  process.rounds = link.rounds;
  if (process.rounds == kRounds) {
    link.done.insert(p);
    if (broken || link.done.size() == link.members.size()) {
      process.phase = Phase::Confirming;
      process.since = tick_;
    }
    return;
  }
  if (broken || link.paused) return leaveLink(p, link);
  link.contributed.insert(p);
  link.pause = link.pause || process.rules->joinRequested();
  if (link.contributed.size() < link.members.size()) return;
  link.contributed.clear();
  process.rounds = ++link.rounds;
  lastCommit_[process.training] = std::max(lastCommit_[process.training], process.list);
  link.paused = link.pause;
}

void World::leaveLink(int p, Link& link) {
  link.gone.insert(p);
  at(p).phase = Phase::Waiting;
  at(p).begun = false;
  at(p).since = tick_;
}

void World::endWell(int p) {
  Process& process = at(p);
  require(process.rounds == kRounds, "a training has ended early");
  require(lastCommit_[process.training] <= process.list,
          fmt::format("process {} ends its training well, and others have continued without it", nameOf(p)));
  const auto [ended, isNew] = endedWell_.try_emplace(process.training, process.list);
  require(isNew || ended->second == process.list,
          fmt::format("process {} ends a training well that others have ended before", nameOf(p)));
  process.phase = Phase::Leaving;
  process.acted = false;
  process.since = tick_;
}

void World::endAll() const {
  const auto sound = std::ranges::count_if(processes_, [](const Process& p) { return !p.faulty; });
  require(!endedWell_.empty() || sound < minNodes_,
          "no process has ended its training, though enough were never disturbed");
  require(!cleanable_ || store_.empty(), "the store is not empty after the last process has left");
}

void World::tick() {
  ++tick_;
  for (Process& process : processes_) process.beaten = process.acted = false;
  for (int p = 0; p < kProcesses; ++p) {
    const Process& process = at(p);
    if (!runs(process) || process.phase == Phase::Absent || process.phase == Phase::Training) continue;
    const auto living = std::ranges::count_if(processes_, [&](const Process& one) {
      return runs(one) && one.phase != Phase::Absent && one.phase != Phase::Leaving;
    });
    const int bound = living >= minNodes_ ? kBound : kPatience + kBound / 4;
    require(tick_ - std::max(process.since, faultAt_) <= bound,
            fmt::format("process {} neither trains nor ends", nameOf(p)));
  }
}

void World::noteList(const Access& access) {
  std::istringstream words(access.text);
  std::string magic, member;
  std::size_t count = 0;
  auto key = std::to_string(elastic::numberIn(access.name, elastic::kList));
  words >> magic >> count;
  for (std::size_t i = 0; i < count && words >> member; ++i) key += ' ' + member;
  if (count > 0) lists_[key] = static_cast<int>(lists_.size()) + 1;
}

Answer World::carryOut(const Access& access) {
  Answer answer{.of = access.name};
  switch (access.kind) {
    case Access::Kind::Put:
      store_[access.name] = access.text;
      break;
    case Access::Kind::Create:
      answer.created = store_.try_emplace(access.name, access.text).second;
      if (answer.created && access.name.starts_with(elastic::kList)) noteList(access);
      break;
    case Access::Kind::Get:
      if (const auto found = store_.find(access.name); found != store_.end()) answer.text = found->second;
      break;
    case Access::Kind::Erase:
      store_.erase(access.name);
      break;
    case Access::Kind::Names:
      for (const auto& [name, text] : store_)
        if (name.starts_with(access.name)) answer.names.push_back(name);
      break;
    case Access::Kind::EraseAll:
      std::erase_if(store_, [&](const auto& one) { return one.first.starts_with(access.name); });
      break;
  }
  const char* const kinds[] = {"put", "create", "get", "erase", "names", "erase all"};
  if (trace)
    *trace +=
        fmt::format(": {} {} {} -> {}{}{}", kinds[static_cast<std::size_t>(access.kind)], access.name,
                    access.text, answer.text, fmt::join(answer.names, " "), answer.created ? "created" : "");
  return answer;
}

/// A card's count of beats is compared with others only, so what counts is how many are missing.
std::string World::normal(const std::string& name, const std::string& text) const {
  if (!name.starts_with(elastic::kMember) || name == elastic::kMember) return text;  // that is of a listing
  std::istringstream words(text);
  std::string magic, rest;
  std::int64_t beat = 0;
  words >> magic >> beat;
  std::getline(words, rest);
  const auto& owner = at(processOf(name.substr(elastic::kMember.size()))).rules;
  return fmt::format("{}{}", owner ? MembershipPrint::beats(*owner) - beat : 0, rest);
}

std::string World::print(const Process& p) const {
  const auto beatOf = [this](const std::string& name, const std::string& beat) {
    const auto& owner = at(processOf(name)).rules;
    return owner ? MembershipPrint::beats(*owner) - std::stoll(beat) : 0;
  };
  auto text = words(static_cast<int>(p.phase), static_cast<int>(p.call), tick_ - p.calledAt, p.begun,
                    p.beaten, p.acted, p.stopped, p.faulty, std::min(tick_ - std::max(p.since, faultAt_), 60),
                    std::max(p.joins - tick_, 0), p.rounds, p.training, p.list);
  if (p.phase == Phase::Meeting || p.phase == Phase::Pairing || p.phase == Phase::Greeting)
    text += words(tick_ - p.phaseAt);
  if (p.call != Call::None)
    for (const auto& answer : p.answers)
      text += words(answer.failed, answer.created, normal(answer.of, answer.text), answer.names);
  if (p.rules) text += "\n" + MembershipPrint::of(*p.rules, timeOf(tick_), beatOf);
  return text;
}

std::string World::describe() const {
  auto text = words(cleanable_, trainings_, lastCommit_, endedWell_, lists_) + '\n';
  for (const auto& process : processes_)
    text += (over(process) ? words("over", process.faulty) : print(process)) + '\n';
  for (const auto& [name, value] : store_) text += fmt::format("{}={}\n", name, normal(name, value));
  for (const auto& access : late_)
    text +=
        words("late", static_cast<int>(access.kind), access.name, normal(access.name, access.text)) + '\n';
  for (const auto& [number, link] : links_) {
    text += words(number, link.met, link.agreed, link.pairing, link.greeted, link.contributed, link.done,
                  link.gone, link.paired, link.open, link.complete, link.begun, link.pause, link.paused,
                  link.training, link.rounds);
    for (const auto& [process, heard] : link.heard) text += words(std::min(tick_ - heard, kTicks + 1));
    text += '\n';
  }
  return text;
}

std::uint64_t World::hash() const {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : describe()) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

void World::require(bool holds, const std::string& what) const {
  if (!holds) throw Violation{what};
}

}  // namespace test
}  // namespace muster
