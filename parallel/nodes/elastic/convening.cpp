// The work of a lease's holder: finds the living processes and writes the list.
#include <algorithm>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/parallel/nodes/elastic/membership_rules.h"
#include "muster/parallel/nodes/elastic/names.h"
#include "muster/parallel/nodes/node_transport.h"

namespace muster {

using namespace std::chrono_literals;
using namespace elastic;

/// Takes a lease. A newcomer leaves it to processes that train.
bool MembershipRules::openLease(NodeStore& store, std::int64_t number) {
  const auto trains = [this](const auto& one) {
    return one.second.card.from > 0 && one.second.card.common == hash_ &&
           (isAlive(one.first) || isOpen(one.first));
  };
  if (generation_.number == 0 && std::ranges::any_of(seen_, trains)) return false;
  return seenAt_ >= notBefore_ && store.create(kLease + std::to_string(number), process_);
}

/// Ends the attempt of a lease, so that the next lease is open.
void MembershipRules::closeLease(NodeStore& store, std::int64_t number) const {
  store.create(kList + std::to_string(number), fmt::format("{} 0\n", kMagic));
}

/// The number of processes that could take part, with this one.
std::size_t MembershipRules::count() const {
  return 1 + static_cast<std::size_t>(std::ranges::count_if(seen_, [this](const auto& one) {
           return one.second.card.common == hash_ && one.second.card.ready && isAlive(one.first);
         }));
}

/// The processes that are ready: those of the last generation in order, then the others, newcomers last.
/// @param more  set to true if some are alive and not ready yet, or not watched for long enough.
std::vector<std::string> MembershipRules::readyProcesses(bool& more) const {
  const auto& before = generation_.members;
  std::vector<std::pair<std::ptrdiff_t, std::string>> ready;
  const auto add = [&](const std::string& process, std::int64_t from) {
    const auto place = std::ranges::find(before, process) - before.begin();
    ready.emplace_back(std::pair(place + (from == 0 ? 1 : 0), process));
  };
  add(process_, card_.from);
  for (const auto& [process, seen] : seen_) {
    if (seen.card.common != hash_) continue;
    const bool alive = isAlive(process);
    if (isOpen(process) || (alive && !seen.card.ready)) more = true;
    if (alive && seen.card.ready) add(process, seen.card.from);
  }
  std::ranges::sort(ready);
  std::vector<std::string> processes;
  for (const auto& [place, process] : ready) processes.push_back(process);
  return processes;
}

/// Both say that they could not reach each other in the same generation. One that says so alone has met a
/// process that was dead or stopped for a time.
bool MembershipRules::areApart(const std::string& one, const std::string& other) const {
  const auto lostBy = [this](const std::string& process, const std::string& lost) {
    const auto& all = process == process_ ? card_.lost : seen_.at(process).card.lost;
    const auto found = all.find(lost);
    return found == all.end() ? 0 : found->second;
  };
  return lostBy(one, other) > 0 && lostBy(one, other) == lostBy(other, one);
}

void MembershipRules::convene(NodeStore& store, std::int64_t number) {
  bool more = false, cut = false;
  const auto ready = readyProcesses(more);
  std::vector<std::string> chosen{process_};
  for (const auto& one : ready) {
    if (one == process_) continue;
    const bool apart =
        std::ranges::any_of(chosen, [&](const std::string& other) { return areApart(one, other); });
    cut = cut || apart;
    if (!apart) chosen.push_back(one);
  }
  const auto now = seenAt_;
  if (attempt_.number != number || attempt_.ready != chosen)
    attempt_ = {.number = number, .changed = now, .ready = chosen};
  const bool enough = chosen.size() >= static_cast<std::size_t>(options_.minNodes);
  if (cut && !enough) {  // the other side may have more processes
    closeLease(store, number);
    notBefore_ = now + options_.silence;
    return;
  }
  if (more || !enough ||
      now - attempt_.changed < std::min<std::chrono::milliseconds>(options_.silence / 4, 2s))
    return;
  std::vector<std::string> members;
  for (const auto& one : ready)
    if (contains(chosen, one)) members.push_back(one);
  publish(store, number, members);
}

void MembershipRules::publish(NodeStore& store, std::int64_t number,
                              const std::vector<std::string>& members) {
  std::string text = fmt::format("{} {}\n", kMagic, members.size());
  for (const auto& one : members) text += one + '\n';
  if (!store.create(kList + std::to_string(number), text + options_.common)) return;
  // Remove the texts of earlier generations, and the cards of dead processes.
  for (const auto& prefix : {kLease, kList, kRendezvous})
    for (const auto& name : store.names(prefix))
      if (numberIn(name, prefix) < number) store.erase(name);
  for (const auto& [process, seen] : seen_)
    if (!isAlive(process) && !isOpen(process)) store.eraseAll(kMember + process);
}

/// Too few processes have come.
void MembershipRules::giveUp(NodeStore& store) {
  bool more = false;
  const auto left = readyProcesses(more);
  place_ = static_cast<int>(std::ranges::find(left, process_) - left.begin());
  throw NodeFailure(fmt::format("only {1} of at least {0} nodes {2} joined {3} in {4} s", options_.minNodes,
                                count(), count() == 1 ? "has" : "have", store.describe(),
                                std::chrono::duration<double>(options_.patience).count()));
}

}  // namespace muster
