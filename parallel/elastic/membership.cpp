#include "muster/parallel/elastic/membership.h"

#include <algorithm>
#include <random>
#include <sstream>

#include "muster/core/base/start_thread.h"
#include "muster/parallel/elastic/names.h"
#include "muster/parallel/exchange/node_transport.h"

namespace muster {

using namespace elastic;
using namespace std::chrono_literals;

namespace {

std::string drawn() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

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

Membership::Membership(NodeStore& store, Options options)
    : store_(store), options_(std::move(options)), process_(drawn()), hash_(hashOf(options_.common)) {
  card_.common = hash_;
  {
    const Lock lock(mutex_);
    writeCard();
  }
  thread_ = startThread("the membership", [this](const std::stop_token& stop) { beat(stop); });
}

Membership::~Membership() {
  thread_.request_stop();
  thread_.join();
  try {
    store_.erase(kMember + process_);
    if (!store_.names(kMember).empty()) return;
    for (const auto& prefix : {kMember, kLease, kList, kRendezvous}) store_.eraseAll(prefix);
  } catch (const std::exception&) {  // the store is not available: the others detect this process's silence
  }
}

void Membership::writeCard() {
  std::string text =
      fmt::format("{} {} {} {} {}", kMagic, ++beats_, card_.common, card_.from, card_.ready ? 1 : 0);
  for (const auto& process : card_.lost) text += ' ' + process;
  store_.put(kMember + process_, text);
}

void Membership::lost(const std::string& process) {
  const Lock lock(mutex_);
  card_.lost.insert(process);
}

/// Rewrites the card several times in the interval after which others consider this process dead.
void Membership::beat(const std::stop_token& stop) {
  const auto rest = std::max<std::chrono::milliseconds>(options_.silence / 10, 5ms);
  while (!stop.stop_requested()) {
    Lock lock(mutex_);
    try {
      writeCard();
      lookForKnocks();
    } catch (const NodeFailure&) {  // `next` reports it
    }
    changed_.wait_for(lock, stop, rest, [] { return false; });
  }
}

/// Reads all cards.
void Membership::look() {
  const auto now = Clock::now();
  std::map<std::string, Seen> all;
  for (const auto& name : store_.names(kMember)) {
    const auto process = name.substr(kMember.size());
    if (process == process_) continue;
    std::istringstream text(store_.get(name));
    std::string magic, beat, word;
    Card card;
    text >> magic >> beat >> card.common >> card.from >> card.ready;
    if (!text || magic != kMagic) continue;
    while (text >> word) card.lost.insert(word);
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
}

/// Of members, the store may still have the cards from before they were members.
void Membership::lookForKnocks() {
  if (card_.ready || generation_.number == 0 || generation_.node != 0 || knocked_) return;
  look();
  for (const auto& [process, seen] : seen_)
    if (seen.card.from == 0 && seen.card.ready && seen.card.common == hash_ && isAlive(process) &&
        !contains(generation_.members, process))
      knocked_ = true;
}

bool Membership::isAlive(const std::string& process) {
  const auto found = seen_.find(process);
  return process == process_ || (found != seen_.end() && found->second.lives &&
                                 Clock::now() - found->second.changed < options_.silence / 2);
}

/// True while it is unknown whether the process is alive: it has shown no sign of life, but this process has
/// watched it only for a short time.
bool Membership::isOpen(const std::string& process) {
  const auto found = seen_.find(process);
  return found != seen_.end() && !found->second.lives &&
         Clock::now() - found->second.since < options_.silence / 2;
}

std::int64_t Membership::latestLease() {
  std::int64_t latest = 0;
  for (const auto& name : store_.names(kLease)) latest = std::max(latest, numberIn(name, kLease));
  return latest;
}

std::optional<Membership::List> Membership::listOf(std::int64_t number) {
  std::istringstream text(store_.get(kList + std::to_string(number)));
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

void Membership::requireCommon(const List& list) const {
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

/// Takes a lease. A newcomer leaves it to processes that train.
bool Membership::openLease(std::int64_t number) {
  const auto trains = [this](const auto& one) MUSTER_REQUIRES(mutex_) {
    return one.second.card.from > 0 && one.second.card.common == hash_ &&
           (isAlive(one.first) || isOpen(one.first));
  };
  if (generation_.number == 0 && std::ranges::any_of(seen_, trains)) return false;
  return Clock::now() >= notBefore_ && store_.create(kLease + std::to_string(number), process_);
}

std::optional<Generation> Membership::next(const std::function<bool()>& stopped) {
  const auto end = Clock::now() + options_.patience;
  const auto rest = std::clamp<std::chrono::milliseconds>(options_.silence / 50, 1ms, 50ms);
  const auto isAliveOne = [this](const auto& one) MUSTER_REQUIRES(mutex_) { return isAlive(one); };
  const auto isOpenOne = [this](const auto& one) MUSTER_REQUIRES(mutex_) { return isOpen(one); };
  Lock lock(mutex_);
  place_ = generation_.number > 0 ? generation_.node : 1;  // reported if the store is lost
  card_.ready = true;
  writeCard();
  for (;; changed_.wait_for(lock, rest)) {
    if (stopped()) return {};
    look();
    const auto latest = latestLease();
    const auto list = latest > 0 ? listOf(latest) : List{};
    const bool isOnIt = list && contains(list->members, process_);
    if (!list) {
      const auto holder = store_.get(kLease + std::to_string(latest));
      if (holder == process_)
        convene(latest);
      else if (!holder.empty() && !isAlive(holder) && !isOpen(holder))
        store_.create(kList + std::to_string(latest), fmt::format("{} 0\n", kMagic));
    } else if (isOnIt && latest > generation_.number) {
      return accept(latest, *list);
    } else if (list->members.empty() || isOnIt) {
      openLease(latest + 1);
    } else if (generation_.number > 0) {
      place_ = std::max(generation_.node, 1);
      throw NodeFailure(
          fmt::format("the other nodes continue without this one: they lost the connection to it, or it was "
                      "silent for {} s",
                      seconds(options_.silence / 2)));
    } else if (std::ranges::any_of(list->members, isAliveOne)) {
      requireCommon(*list);
    } else if (std::ranges::none_of(list->members, isOpenOne)) {
      openLease(latest + 1);  // all processes on the list have died
    }
    if (Clock::now() > end) {
      bool more = false;
      const auto left = readyProcesses(more);
      place_ = static_cast<int>(std::ranges::find(left, process_) - left.begin());
      throw NodeFailure(fmt::format("only {1} of at least {0} nodes {2} joined {3} in {4} s",
                                    options_.minNodes, count(), count() == 1 ? "has" : "have",
                                    store_.describe(), seconds(options_.patience)));
    }
  }
}

std::optional<Generation> Membership::accept(std::int64_t number, const List& list) {
  generation_.number = number;
  generation_.members = list.members;
  generation_.node = static_cast<int>(std::ranges::find(list.members, process_) - list.members.begin());
  card_.from = number;
  card_.ready = false;
  knocked_ = false;
  writeCard();
  return generation_;
}

}  // namespace muster
