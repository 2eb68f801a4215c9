#pragma once

#include <cerrno>

namespace muster::detail {

/// Calls a function of the system, again if a signal has interrupted it. @return what it returned.
template <typename Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

}  // namespace muster::detail
