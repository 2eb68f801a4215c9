#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/parallel/nodes/elastic/node_store.h"

namespace muster {

/// The processes of a generation: the text that the holder of its lease creates in the store.
struct MemberList {
  std::vector<std::string> members = {};  ///< none: the attempt to form the generation has failed
  std::string common = {};                ///< MembershipOptions::common

  std::string text() const;
  static std::optional<MemberList> parse(const std::string& text);
  /// The list of a generation; nothing if the store has none.
  static std::optional<MemberList> of(NodeStore& store, std::int64_t number);
  /// @return false if the generation has a list already.
  bool create(NodeStore& store, std::int64_t number) const;
  /// @param own  what this process has. @throws InvalidArgument with the first line that differs.
  void requireCommon(const std::string& own) const;
};

namespace elastic {

// The names of the texts about a training, and what they begin with.
inline const std::string kMagic = "muster-elastic-2";
inline const std::string kMember = "member-", kLease = "lease-", kList = "members-",
                         kRendezvous = "rendezvous-";

/// The number after the prefix, up to the next '-'; 0 if the name is not one of these.
inline std::int64_t numberIn(std::string_view name, std::string_view prefix) {
  name.remove_prefix(prefix.size());
  name = name.substr(0, name.find('-'));
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), number);
  return problem == std::errc() && end == name.data() + name.size() ? number : 0;
}

inline bool contains(const std::vector<std::string>& all, const std::string& one) {
  return std::ranges::find(all, one) != all.end();
}

/// The last generation for which a process has taken the lease; 0: none.
std::int64_t latestLease(NodeStore& store);
/// The names of all texts about generations. @param before  only those of earlier ones.
std::vector<std::string> generationTexts(NodeStore& store, std::optional<std::int64_t> before = {});
/// Erases what killed processes have left of such texts, unless there are complete ones.
void eraseIncompleteTexts(NodeStore& store);

}  // namespace elastic

}  // namespace muster
