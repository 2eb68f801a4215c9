#pragma once

#include <cstdint>
#include <string_view>

#include "muster/parallel/exchange/exchange.h"

namespace muster {

/// The block of Place::Replica that a strategy with arrivals, or one that resets the updater's state, gets
/// in addition to its own blocks: the numbers of OwnUpdates.
inline constexpr std::string_view kOwnUpdates = "updates of each worker";

/// What a worker remembers of its updates, by which Adam corrects its moments: workers may differ in it.
struct OwnUpdates {
  double count = 0;            ///< since the worker's state was zero; begins with the model's
  double mergedCopyReset = 0;  ///< 1: the merged copy of the updater's state was set to zero

  static constexpr std::int64_t kNumbers = 2;

  /// The numbers of a worker; null if the strategy has no such block.
  static OwnUpdates* find(const Exchange& exchange, std::size_t worker) {
    for (const StrategyState& block : exchange.strategyBlocks())
      if (block.declared.name == kOwnUpdates)
        return reinterpret_cast<OwnUpdates*>(block.values[worker].raw());
    return nullptr;
  }
};
static_assert(sizeof(OwnUpdates) == OwnUpdates::kNumbers * sizeof(double));

}  // namespace muster
