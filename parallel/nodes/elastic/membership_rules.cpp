#include "muster/parallel/nodes/elastic/membership_rules.h"

#include <algorithm>
#include <utility>

#include "muster/parallel/nodes/node_transport.h"

namespace muster {

using namespace elastic;
using namespace std::chrono_literals;

namespace {

double seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

/// Ends the attempt of a lease, so that the next lease is open.
void closeLease(NodeStore& store, std::int64_t number) {
  MemberList{}.create(store, number);
}

}  // namespace

std::string Generation::rendezvous() const {
  return fmt::format("{}{}-", kRendezvous, number);
}

MembershipRules::MembershipRules(std::string process, MembershipOptions options)
    : options_(std::move(options)), roster_(std::move(process), options_.common, options_.silence / 2) {}

void MembershipRules::lost(const std::string& process, Time now) {
  noteTime(now);
  if (!slept_) roster_.own().lost[process] = generation_.number;
}

void MembershipRules::noteTime(Time now) {
  if (roster_.written() && now - lastCall_ > options_.silence / 2) slept_ = true;
  lastCall_ = now;
}

void MembershipRules::beat(NodeStore& store, Time now) {
  noteTime(now);
  if (isOver(store)) {  // no other process may count on this one
    joinRequested_ = true;
    return;
  }
  roster_.write(store);
  if (roster_.own().ready || generation_.number == 0 || joinRequested_) return;
  joinRequested_ = isLeftOut(store);
  if (generation_.node != 0 || joinRequested_) return;
  roster_.refresh(store, now);
  joinRequested_ = roster_.anyJoins(generation_.members);
}

/// The last process of a training erases its texts. A process that was stopped meanwhile finds neither the
/// list of its generation nor a later one with this process: the others have ended, even if new processes
/// train now.
bool MembershipRules::isOver(NodeStore& store) const {
  if (!slept_ || generation_.number == 0) return false;
  const auto own = MemberList::of(store, generation_.number);
  if (own && own->members == generation_.members) return false;
  const auto latest = latestLease(store);
  const auto list = MemberList::of(store, latest);
  return latest <= generation_.number || !list || !contains(list->members, process());
}

/// Whether the others have begun a later generation without this process, or have ended, because it was
/// silent.
bool MembershipRules::isLeftOut(NodeStore& store) const {
  const auto latest = latestLease(store);
  if (latest <= generation_.number) return isOver(store);
  const auto list = MemberList::of(store, latest);
  return list && !list->members.empty() && !contains(list->members, process());
}

void MembershipRules::throwLeftOut() {
  place_ = std::max(generation_.node, 1);
  throw NodeFailure(
      fmt::format("the other nodes continue without this one: they lost the connection to it, or it was "
                  "silent for {} s",
                  seconds(options_.silence / 2)));
}

void MembershipRules::requireCurrent(NodeStore& store, Time now) {
  noteTime(now);
  if (generation_.number > 0 && isLeftOut(store)) throwLeftOut();
}

void MembershipRules::begin(NodeStore& store, Time now) {
  noteTime(now);
  if (isOver(store)) throwLeftOut();
  end_ = now + options_.patience;
  place_ = generation_.number > 0 ? generation_.node : 1;  // reported if the store is lost
  roster_.own().ready = true;
  roster_.write(store);
}

std::optional<Generation> MembershipRules::tryNext(NodeStore& store, Time now) {
  noteTime(now);
  roster_.refresh(store, now);
  const auto latest = latestLease(store);
  if (isOver(store)) throwLeftOut();
  const auto list = latest > 0 ? MemberList::of(store, latest) : MemberList{};
  const bool isOnIt = list && contains(list->members, process());
  const auto any = [&](bool (Roster::*is)(const std::string&) const) {
    return std::ranges::any_of(list->members, [&](const auto& one) { return (roster_.*is)(one); });
  };
  if (!list) {
    const auto holder = store.get(kLease + std::to_string(latest));
    if (holder == process())
      convene(store, latest);
    else if (!holder.empty() && !roster_.isAlive(holder) && !roster_.isOpen(holder))
      closeLease(store, latest);
  } else if (isOnIt && latest > generation_.number) {
    return accept(store, latest, *list);
  } else if (list->members.empty() || isOnIt) {
    openLease(store, latest + 1);
  } else if (generation_.number > 0) {
    throwLeftOut();
  } else if (any(&Roster::isAlive)) {
    list->requireCommon(options_.common);
  } else if (!any(&Roster::isOpen)) {
    openLease(store, latest + 1);  // all processes on the list have died
  }
  if (now > end_) giveUp(store);
  return {};
}

/// Takes a lease. A newcomer leaves it to processes that train.
bool MembershipRules::openLease(NodeStore& store, std::int64_t number) {
  if (generation_.number == 0 && roster_.anyTrains()) return false;
  return roster_.time() >= notBefore_ && store.create(kLease + std::to_string(number), process());
}

void MembershipRules::convene(NodeStore& store, std::int64_t number) {
  bool more = false;
  const auto ready = roster_.ready(generation_.members, more);
  const auto members = roster_.together(ready);
  const auto now = roster_.time();
  if (attempt_.number != number || attempt_.ready != members)
    attempt_ = {.number = number, .changed = now, .ready = members};
  const bool enough = members.size() >= static_cast<std::size_t>(options_.minNodes);
  if (members.size() < ready.size() && !enough) {  // the other side may have more processes
    closeLease(store, number);
    notBefore_ = now + options_.silence;
    return;
  }
  if (more || !enough ||
      now - attempt_.changed < std::min<std::chrono::milliseconds>(options_.silence / 4, 2s))
    return;
  if (!MemberList{members, options_.common}.create(store, number)) return;
  for (const auto& name : generationTexts(store, number)) store.erase(name);
  for (const auto& process : roster_.dead()) store.eraseAll(kMember + process);
}

/// Too few processes have come.
void MembershipRules::giveUp(NodeStore& store) {
  bool more = false;
  const auto left = roster_.ready(generation_.members, more);
  place_ = static_cast<int>(std::ranges::find(left, process()) - left.begin());
  throw NodeFailure(fmt::format("only {1} of at least {0} nodes {2} joined {3} in {4} s", options_.minNodes,
                                roster_.count(), roster_.count() == 1 ? "has" : "have", store.describe(),
                                seconds(options_.patience)));
}

Generation MembershipRules::accept(NodeStore& store, std::int64_t number, const MemberList& list) {
  generation_.number = number;
  generation_.members = list.members;
  generation_.node = static_cast<int>(std::ranges::find(list.members, process()) - list.members.begin());
  roster_.own().from = number;
  roster_.own().ready = false;
  joinRequested_ = slept_ = false;
  roster_.write(store);
  return generation_;
}

/// The last process that leaves a training erases all texts. A process that was killed leaves its card, so
/// each other one must be seen alive once more, or watched until it is known to be dead.
bool MembershipRules::tryLeave(NodeStore& store, Time now) {
  if (!std::exchange(leaving_, true)) {
    store.erase(kMember + process());
    if (generation_.number > 0) roster_.forget();
  }
  const auto texts = generationTexts(store);
  roster_.refresh(store, now);
  if (roster_.anyAlive()) return true;
  if (roster_.anyOpen()) return false;
  // A text that another process has written since then stays.
  for (const auto& name : texts) store.erase(name);
  store.eraseAll(kMember);
  eraseIncompleteTexts(store);
  return true;
}

}  // namespace muster
