#pragma once

#include <cerrno>

namespace muster::detail {

/// Calls a system function; repeats the call if a signal interrupts it. @return its result.
template <typename Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

}  // namespace muster::detail
