#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// The names of Membership's texts in the store.

namespace muster::elastic {

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

}  // namespace muster::elastic
