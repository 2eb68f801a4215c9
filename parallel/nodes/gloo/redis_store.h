#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "muster/parallel/nodes/elastic/node_store.h"

namespace muster {

/// The address of a Redis server, and the key that muster uses.
struct RedisAddress {
  std::string host;
  int port = 6379;
  std::string key = "muster";

  /// Reads "redis://host:port/key", where port and key may be missing, or "redis://[::1]:6379/key".
  /// @throws InvalidArgument, also for an address with a password; the message does not show it.
  static RedisAddress parse(std::string_view address);
  /// As in "redis://host:6379/key".
  std::string text() const;
};

/// Opens a Redis server. All texts are fields of one hash, so nothing is left after the last text is erased.
/// The password, if any, is in the environment variable MUSTER_REDIS_PASSWORD, or in the first line of the
/// regular file of at most 64 KiB that MUSTER_REDIS_PASSWORD_FILE names. Each call waits for a server that
/// restarts, up to the limit. A text longer than NodeStore::kMostBytes is an error.
/// @param limit  for each call.
/// @throws InvalidArgument for a wrong address, a password file that cannot be read, or if this build has no
///         hiredis; NodeFailure if the server cannot be reached, or refuses.
std::unique_ptr<NodeStore> openRedisStore(const std::string& address,
                                          std::chrono::milliseconds limit = std::chrono::seconds(5));

}  // namespace muster
