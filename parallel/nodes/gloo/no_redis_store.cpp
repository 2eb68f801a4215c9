#include "muster/core/base/error.h"
#include "muster/parallel/nodes/gloo/redis_store.h"

namespace muster {

std::unique_ptr<NodeStore> openRedisStore(const std::string& address, std::chrono::milliseconds) {
  throw InvalidArgument(
      fmt::format("store: {} is a Redis server, and this build has no hiredis (Debian: libhiredis-dev); "
                  "install it and build again, or name a directory",
                  RedisAddress::parse(address).text()));
}

}  // namespace muster
