#include "muster/parallel/nodes/elastic/roster.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "muster/parallel/nodes/byte_hash.h"
#include "muster/parallel/nodes/elastic/member_list.h"

namespace muster {

using namespace elastic;

std::string MemberCard::text(std::int64_t beat) const {
  std::string text = fmt::format("{} {} {} {} {}", kMagic, beat, common, from, ready ? 1 : 0);
  for (const auto& [process, generation] : lost) text += fmt::format(" {}:{}", process, generation);
  return text;
}

std::optional<MemberCard> MemberCard::parse(const std::string& text, std::string& beat) {
  std::istringstream words(text);
  std::string magic, word;
  MemberCard card;
  words >> magic >> beat >> card.common >> card.from >> card.ready;
  if (!words || magic != kMagic) return {};
  while (words >> word) {
    const auto end = std::min(word.find(':'), word.size());
    card.lost[word.substr(0, end)] = numberIn(word, word.substr(0, std::min(end + 1, word.size())));
  }
  return card;
}

Roster::Roster(std::string process, std::string_view common, std::chrono::milliseconds patience)
    : process_(std::move(process)), patience_(patience) {
  ByteHash hash;
  hash.add(common);
  own_.common = fmt::format("{:016x}", hash.value());
}

void Roster::write(NodeStore& store) {
  store.put(kMember + process_, own_.text(++beats_));
}

void Roster::refresh(NodeStore& store, Time now) {
  std::map<std::string, Seen> all;
  for (const auto& name : store.names(kMember)) {
    const auto process = name.substr(kMember.size());
    if (process == process_) continue;
    std::string beat;
    const auto card = MemberCard::parse(store.get(name), beat);
    if (!card) continue;
    const auto before = seen_.find(process);
    const bool isNew = before == seen_.end();
    Seen& seen = all[process];
    if (isNew)
      seen.since = now;
    else
      seen = before->second;
    if (!isNew && seen.beat != beat) {
      seen.changed = now;
      seen.lives = true;
    }
    seen.beat = beat;
    seen.card = *card;
  }
  seen_ = std::move(all);
  seenAt_ = now;
}

Roster::Life Roster::lifeOf(const std::string& process) const {
  if (process == process_) return Life::Alive;
  const auto found = seen_.find(process);
  if (found == seen_.end()) return Life::Unknown;
  const Seen& seen = found->second;
  if (seenAt_ - (seen.lives ? seen.changed : seen.since) >= patience_) return Life::Dead;
  return seen.lives ? Life::Alive : Life::Open;
}

std::vector<std::string> Roster::withLife(Life life) const {
  std::vector<std::string> processes;
  for (const auto& [process, seen] : seen_)
    if (lifeOf(process) == life) processes.push_back(process);
  return processes;
}

bool Roster::anyTrains() const {
  return std::ranges::any_of(seen_, [this](const auto& one) {
    return one.second.card.from > 0 && one.second.card.common == own_.common &&
           (isAlive(one.first) || isOpen(one.first));
  });
}

bool Roster::anyJoins(const std::vector<std::string>& members) const {
  return std::ranges::any_of(seen_, [&](const auto& one) {
    return one.second.card.from == 0 && isReady(one.first, one.second) && !contains(members, one.first);
  });
}

std::size_t Roster::count() const {
  return 1 + static_cast<std::size_t>(std::ranges::count_if(
                 seen_, [this](const auto& one) { return isReady(one.first, one.second); }));
}

std::vector<std::string> Roster::ready(const std::vector<std::string>& before, bool& more) const {
  std::vector<std::pair<std::ptrdiff_t, std::string>> places;
  const auto add = [&](const std::string& process, std::int64_t from) {
    const auto place = std::ranges::find(before, process) - before.begin();
    places.emplace_back(std::pair(place + (from == 0 ? 1 : 0), process));
  };
  add(process_, own_.from);
  for (const auto& [process, seen] : seen_) {
    if (seen.card.common != own_.common) continue;
    if (isOpen(process) || (isAlive(process) && !seen.card.ready)) more = true;
    if (isReady(process, seen)) add(process, seen.card.from);
  }
  std::ranges::sort(places);
  std::vector<std::string> processes;
  for (const auto& [place, process] : places) processes.push_back(process);
  return processes;
}

std::int64_t Roster::lostBy(const std::string& process, const std::string& lost) const {
  const auto& all = process == process_ ? own_.lost : seen_.at(process).card.lost;
  const auto found = all.find(lost);
  return found == all.end() ? 0 : found->second;
}

std::vector<std::string> Roster::together(const std::vector<std::string>& ready) const {
  std::vector<std::string> chosen;
  for (const auto& one : ready) {
    const auto isApart = [&](const std::string& other) { return areApart(one, other); };
    if (!isApart(process_) && std::ranges::none_of(chosen, isApart)) chosen.push_back(one);
  }
  return chosen;
}

}  // namespace muster
