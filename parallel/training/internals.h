#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "muster/parallel/exchange/transport.h"

namespace muster {
class Model;
}

namespace muster::detail {

/// Settings that tests change inside a wrapper, by `Builder::internals`.
struct Internals {
  /// How long one call within `fit()` may last before a warning names it.
  std::chrono::milliseconds stallPatience{10'000};
  /// If above 0, workers on the CPU are treated as if they were on this many devices (worker i on device i
  /// mod this), and are merged like workers on GPUs.
  int pretendedDevices = 0;
  /// A transport between devices that fails.
  std::optional<TransportKind> failingTransport = {};
  /// Called with each new replica, which lives as long as the wrapper.
  std::function<void(const Model& replica)> replicaMade = {};
  /// The root under which memory limits are read.
  std::filesystem::path root = "/";
  /// The version of muster that other nodes see; "": the library's.
  std::string version = {};
};

}  // namespace muster::detail
