#pragma once

#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "muster/core/base/error.h"

namespace muster {

/// Starts a thread.
/// @param name  of the thread, in the error, as in "worker 1 on cpu".
/// @param body  takes a std::stop_token, or nothing.
/// @throws Error naming the thread if the system refuses one.
template <typename Body>
std::jthread startThread(std::string_view name, Body&& body) {
  try {
    return std::jthread(std::forward<Body>(body));
  } catch (const std::system_error& error) {
    throw Error(
        fmt::format("the thread of {} could not be started: {}; the limits on threads (ulimit -u, a "
                    "container's pids.max) and on memory decide how many there may be",
                    name, error.what()));
  }
}

}  // namespace muster
