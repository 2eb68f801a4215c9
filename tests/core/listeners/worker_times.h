#pragma once

#include "muster/core/nn/listener.h"

namespace muster::test {

/// A worker's times, with 100 examples a batch.
inline WorkerTimes times(int worker, std::int64_t batches, std::chrono::nanoseconds computing,
                         std::chrono::nanoseconds data, std::chrono::nanoseconds workers,
                         std::chrono::nanoseconds merging) {
  return {.worker = worker,
          .batches = batches,
          .examples = batches * 100,
          .computing = computing,
          .waitingForData = data,
          .waitingForWorkers = workers,
          .merging = merging};
}

}  // namespace muster::test
