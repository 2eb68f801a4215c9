#include "muster/parallel/nodes/elastic/membership_rules.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/parallel/nodes/elastic/names.h"
#include "muster/parallel/nodes/node_transport.h"

namespace muster {

using namespace elastic;

namespace {

std::string hashOf(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return fmt::format("{:016x}", hash);
}

double seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

std::string Generation::rendezvous() const {
  return fmt::format("{}{}-", kRendezvous, number);
}

MembershipRules::MembershipRules(std::string process, MembershipOptions options)
    : process_(std::move(process)), hash_(hashOf(options.common)), options_(std::move(options)) {
  card_.common = hash_;
}

void MembershipRules::writeCard(NodeStore& store) {
  std::string text =
      fmt::format("{} {} {} {} {}", kMagic, ++beats_, card_.common, card_.from, card_.ready ? 1 : 0);
  for (const auto& [process, generation] : card_.lost) text += fmt::format(" {}:{}", process, generation);
  store.put(kMember + process_, text);
}

void MembershipRules::lost(const std::string& process, Time now) {
  noteTime(now);
  if (!slept_) card_.lost[process] = generation_.number;
}

void MembershipRules::noteTime(Time now) {
  if (beats_ > 0 && now - lastCall_ > options_.silence / 2) slept_ = true;
  lastCall_ = now;
}

void MembershipRules::beat(NodeStore& store, Time now) {
  noteTime(now);
  if (isOver(store)) {  // no other process may count on this one
    joinRequested_ = true;
    return;
  }
  writeCard(store);
  if (card_.ready || generation_.number == 0 || joinRequested_) return;
  joinRequested_ = isLeftOut(store);
  if (generation_.node != 0 || joinRequested_) return;
  look(store, now);
  joinRequested_ =
      std::ranges::any_of(seen_, [&](const auto& one) { return isJoinRequest(one.first, one.second); });
}

/// Of members, the store may still have the cards from before they were members.
bool MembershipRules::isJoinRequest(const std::string& process, const Seen& seen) const {
  return seen.card.from == 0 && seen.card.ready && seen.card.common == hash_ && isAlive(process) &&
         !contains(generation_.members, process);
}

/// Reads all cards.
void MembershipRules::look(NodeStore& store, Time now) {
  std::map<std::string, Seen> all;
  for (const auto& name : store.names(kMember)) {
    const auto process = name.substr(kMember.size());
    if (process == process_) continue;
    std::istringstream text(store.get(name));
    std::string magic, beat, word;
    Card card;
    text >> magic >> beat >> card.common >> card.from >> card.ready;
    if (!text || magic != kMagic) continue;
    while (text >> word) {
      const auto end = std::min(word.find(':'), word.size());
      card.lost[word.substr(0, end)] = numberIn(word, word.substr(0, std::min(end + 1, word.size())));
    }
    const auto before = seen_.find(process);
    Seen& seen = all[process];
    if (before != seen_.end()) seen = before->second;
    if (before == seen_.end()) seen.since = now;
    if (before != seen_.end() && seen.beat != beat) {
      seen.changed = now;
      seen.lives = true;
    }
    seen.beat = beat;
    seen.card = card;
  }
  seen_ = std::move(all);
  seenAt_ = now;
}

bool MembershipRules::isAlive(const std::string& process) const {
  const auto found = seen_.find(process);
  return process == process_ || (found != seen_.end() && found->second.lives &&
                                 seenAt_ - found->second.changed < options_.silence / 2);
}

/// True while it is unknown whether the process is alive: it has shown no sign of life, but this process has
/// watched it only for a short time.
bool MembershipRules::isOpen(const std::string& process) const {
  const auto found = seen_.find(process);
  return found != seen_.end() && !found->second.lives && seenAt_ - found->second.since < options_.silence / 2;
}

std::int64_t MembershipRules::latestLease(NodeStore& store) const {
  std::int64_t latest = 0;
  for (const auto& name : store.names(kLease)) latest = std::max(latest, numberIn(name, kLease));
  return latest;
}

std::optional<MembershipRules::List> MembershipRules::listOf(NodeStore& store, std::int64_t number) const {
  std::istringstream text(store.get(kList + std::to_string(number)));
  std::string magic, line;
  std::size_t count = 0;
  text >> magic >> count;
  if (!text || magic != kMagic) return {};
  List list;
  while (list.members.size() < count && text >> line) list.members.push_back(line);
  std::getline(text, line);
  while (std::getline(text, line)) list.common += line + '\n';
  return list;
}

/// The last process of a training erases its texts. A process that was stopped meanwhile finds neither the
/// list of its generation nor a later one with this process: the others have ended, even if new processes
/// train now.
bool MembershipRules::isOver(NodeStore& store) const {
  if (!slept_ || generation_.number == 0) return false;
  const auto own = listOf(store, generation_.number);
  if (own && own->members == generation_.members) return false;
  const auto latest = latestLease(store);
  const auto list = listOf(store, latest);
  return latest <= generation_.number || !list || !contains(list->members, process_);
}

/// Whether the others have begun a later generation without this process, or have ended, because it was
/// silent.
bool MembershipRules::isLeftOut(NodeStore& store) const {
  const auto latest = latestLease(store);
  if (latest <= generation_.number) return isOver(store);
  const auto list = listOf(store, latest);
  return list && !list->members.empty() && !contains(list->members, process_);
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

void MembershipRules::requireCommon(const List& list) const {
  std::istringstream own(options_.common), theirs(list.common);
  std::string mine, other;
  const auto read = [](std::istringstream& text, std::string& line) {
    line.clear();
    return static_cast<bool>(std::getline(text, line));
  };
  for (bool more = true; more;) {
    const bool isMine = read(own, mine), isTheirs = read(theirs, other);
    more = isMine || isTheirs;
    require(isMine == isTheirs && mine == other,
            "nodes: the processes that train have \"{}\", and this one has \"{}\"", other, mine);
  }
}

void MembershipRules::begin(NodeStore& store, Time now) {
  noteTime(now);
  if (isOver(store)) throwLeftOut();
  end_ = now + options_.patience;
  place_ = generation_.number > 0 ? generation_.node : 1;  // reported if the store is lost
  card_.ready = true;
  writeCard(store);
}

std::optional<Generation> MembershipRules::tryNext(NodeStore& store, Time now) {
  noteTime(now);
  look(store, now);
  const auto latest = latestLease(store);
  if (isOver(store)) throwLeftOut();
  const auto list = latest > 0 ? listOf(store, latest) : List{};
  const bool isOnIt = list && contains(list->members, process_);
  const auto any = [&](bool (MembershipRules::*is)(const std::string&) const) {
    return std::ranges::any_of(list->members, [&](const auto& one) { return (this->*is)(one); });
  };
  if (!list) {
    const auto holder = store.get(kLease + std::to_string(latest));
    if (holder == process_)
      convene(store, latest);
    else if (!holder.empty() && !isAlive(holder) && !isOpen(holder))
      closeLease(store, latest);
  } else if (isOnIt && latest > generation_.number) {
    return accept(store, latest, *list);
  } else if (list->members.empty() || isOnIt) {
    openLease(store, latest + 1);
  } else if (generation_.number > 0) {
    throwLeftOut();
  } else if (any(&MembershipRules::isAlive)) {
    requireCommon(*list);
  } else if (!any(&MembershipRules::isOpen)) {
    openLease(store, latest + 1);  // all processes on the list have died
  }
  if (now > end_) giveUp(store);
  return {};
}

Generation MembershipRules::accept(NodeStore& store, std::int64_t number, const List& list) {
  generation_.number = number;
  generation_.members = list.members;
  generation_.node = static_cast<int>(std::ranges::find(list.members, process_) - list.members.begin());
  card_.from = number;
  card_.ready = false;
  joinRequested_ = slept_ = false;
  writeCard(store);
  return generation_;
}

/// The last process that leaves a training erases all texts. A process that was killed leaves its card, so
/// each other one must be seen alive once more, or watched until it is known to be dead.
bool MembershipRules::tryLeave(NodeStore& store, Time now) {
  if (!std::exchange(leaving_, true)) {
    store.erase(kMember + process_);
    if (generation_.number > 0) seen_.clear();
  }
  std::vector<std::string> texts;
  for (const auto& prefix : {kLease, kList, kRendezvous})
    for (auto& name : store.names(prefix)) texts.push_back(std::move(name));
  look(store, now);
  const auto lives = [&](const auto& one) { return isAlive(one.first); };
  if (std::ranges::any_of(seen_, lives)) return true;
  if (std::ranges::any_of(seen_, [&](const auto& one) { return isOpen(one.first); })) return false;
  // A text that another process has written since then stays.
  for (const auto& name : texts) store.erase(name);
  store.eraseAll(kMember);
  for (const auto& prefix : {kLease, kList, kRendezvous})
    if (store.names(prefix).empty()) store.eraseAll(prefix);  // what is not complete
  return true;
}

}  // namespace muster
