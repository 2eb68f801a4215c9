#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "muster/parallel/elastic/node_store.h"

namespace muster {

/// Where a Redis server is, and what of it is ours.
struct RedisAddress {
  std::string host;
  int port = 6379;
  std::string key = "muster";

  /// "redis://host:port/key", of which port and key may be missing; "redis://[::1]:6379/key".
  /// @throws InvalidArgument, also for one with a password, which it does not repeat.
  static RedisAddress parse(std::string_view address);
  /// As in "redis://host:6379/key".
  std::string text() const;
};

/// A Redis server, where all texts are the fields of one hash, so that nothing is left of them when the last
/// one is erased. The password is that in the variable MUSTER_REDIS_PASSWORD of the environment, or the first
/// line of the file that MUSTER_REDIS_PASSWORD_FILE names; there may be none. A server that restarts is
/// waited for, in each call until the limit. A text longer than NodeStore::kMostBytes is an error.
/// @param limit  for each call.
/// @throws InvalidArgument for a wrong address, a file of the password that cannot be read, or where this
///         build has no hiredis; NodeFailure if the server cannot be reached, or refuses.
std::unique_ptr<NodeStore> openRedisStore(const std::string& address,
                                          std::chrono::milliseconds limit = std::chrono::seconds(5));

}  // namespace muster
