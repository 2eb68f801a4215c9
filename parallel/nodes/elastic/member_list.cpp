#include "muster/parallel/nodes/elastic/member_list.h"

#include <sstream>

#include "muster/core/base/error.h"

namespace muster {

using namespace elastic;

std::string MemberList::text() const {
  std::string text = fmt::format("{} {}\n", kMagic, members.size());
  for (const auto& one : members) text += one + '\n';
  return text + common;
}

std::optional<MemberList> MemberList::parse(const std::string& text) {
  std::istringstream in(text);
  std::string magic, line;
  std::size_t count = 0;
  in >> magic >> count;
  if (!in || magic != kMagic) return {};
  MemberList list;
  while (list.members.size() < count && in >> line) list.members.push_back(line);
  std::getline(in, line);
  while (std::getline(in, line)) list.common += line + '\n';
  return list;
}

std::optional<MemberList> MemberList::of(NodeStore& store, std::int64_t number) {
  return parse(store.get(kList + std::to_string(number)));
}

bool MemberList::create(NodeStore& store, std::int64_t number) const {
  return store.create(kList + std::to_string(number), text());
}

void MemberList::requireCommon(const std::string& own) const {
  const auto [mine, theirs] = std::ranges::mismatch(own, common);
  if (mine == own.end() && theirs == common.end()) return;
  const auto equal = static_cast<std::size_t>(mine - own.begin());
  const std::size_t begin = equal == 0 ? 0 : own.rfind('\n', equal - 1) + 1;
  const auto line = [begin](const std::string& text) {
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  throw InvalidArgument(fmt::format("nodes: the processes that train have \"{}\", and this one has \"{}\"",
                                    line(common), line(own)));
}

namespace elastic {

std::int64_t latestLease(NodeStore& store) {
  std::int64_t latest = 0;
  for (const auto& name : store.names(kLease)) latest = std::max(latest, numberIn(name, kLease));
  return latest;
}

std::vector<std::string> generationTexts(NodeStore& store, std::optional<std::int64_t> before) {
  std::vector<std::string> texts;
  for (const auto& prefix : {kLease, kList, kRendezvous})
    for (auto& name : store.names(prefix))
      if (!before || numberIn(name, prefix) < *before) texts.push_back(std::move(name));
  return texts;
}

void eraseIncompleteTexts(NodeStore& store) {
  for (const auto& prefix : {kLease, kList, kRendezvous})
    if (store.names(prefix).empty()) store.eraseAll(prefix);
}

}  // namespace elastic

}  // namespace muster
