#pragma once

#include "muster/core/optim/updaters.h"
#include "tests/support/standard.h"

namespace muster::test {

/// The library's updaters with their defaults.
inline std::vector<Updater> allUpdaters() {
  return std::apply([](const auto&... updater) { return std::vector<Updater>{updater...}; },
                    LibraryUpdaters{});
}

}  // namespace muster::test
