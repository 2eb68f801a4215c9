#include <algorithm>
#include <charconv>

#include "muster/core/base/error.h"
#include "muster/parallel/nodes/gloo/redis_store.h"

namespace muster {

RedisAddress RedisAddress::parse(std::string_view address) {
  constexpr std::string_view kScheme = "redis://";
  require(address.find('@') == address.npos,
          "store: the address of a Redis server has no user and no password; a password is read from "
          "MUSTER_REDIS_PASSWORD or from the file that MUSTER_REDIS_PASSWORD_FILE names");
  const auto check = [address](bool right) {
    require(right, "store: {} is not the address of a Redis server, as in redis://host:6379/name", address);
  };
  check(address.starts_with(kScheme));
  check(std::ranges::all_of(address, [](char c) { return c > ' ' && c < '\x7f'; }));
  auto place = address.substr(kScheme.size());
  RedisAddress result;
  if (const auto slash = place.find('/'); slash != place.npos) {
    if (slash + 1 < place.size()) result.key = place.substr(slash + 1);
    place = place.substr(0, slash);
  }
  if (place.starts_with('[')) {  // an IPv6 address
    const auto end = place.find(']');
    check(end != place.npos);
    result.host = place.substr(1, end - 1);
    place = place.substr(end + 1);
  } else {
    const auto colon = std::min(place.find(':'), place.size());
    result.host = place.substr(0, colon);
    place = place.substr(colon);
  }
  check(!result.host.empty());
  if (place.empty()) return result;
  const auto* const last = place.data() + place.size();
  const auto [end, problem] = std::from_chars(place.data() + 1, last, result.port);
  check(place.front() == ':' && problem == std::errc() && end == last && result.port >= 1 &&
        result.port <= 65535);
  return result;
}

std::string RedisAddress::text() const {
  const bool six = host.find(':') != host.npos;
  return fmt::format("redis://{}{}{}:{}/{}", six ? "[" : "", host, six ? "]" : "", port, key);
}

}  // namespace muster
