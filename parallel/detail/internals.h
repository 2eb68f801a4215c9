#pragma once

#include <chrono>
#include <filesystem>
#include <optional>

#include "muster/parallel/exchange/transport.h"

namespace muster::detail {

/// What tests change inside a wrapper, by `Builder::internals`.
struct Internals {
  /// How long one call within `fit()` may last before a warning names it.
  std::chrono::milliseconds stallPatience{10'000};
  /// Workers on the CPU are treated as if they were on this many devices, worker i on device i mod this, and
  /// are merged as GPUs are. 0: they are not.
  int pretendedDevices = 0;
  /// This route between devices fails.
  std::optional<Route> failingRoute = {};
  /// Where the limits on memory are read.
  std::filesystem::path root = "/";
};

}  // namespace muster::detail
