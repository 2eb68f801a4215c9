#pragma once

#include <cstdint>

namespace muster {

/// What a worker brings to the end of a round.
struct Contribution {
  double scoreSum = 0;          ///< of the worker's steps since its last merge, each times its weight
  double weight = 0;            ///< sum of those steps' loss normalisers
  double plainScoreSum = 0;     ///< of those steps, without weights
  std::int64_t batches = 0;     ///< of those steps
  std::int64_t examples = 0;    ///< of those steps
  std::int64_t iteration = 0;   ///< iterations finished after the last of them
  double largest = 0;           ///< largest magnitude in the replica, if it was checked
  bool ended = false;           ///< the worker has had its last batch of the epoch
  bool late = false;            ///< the last step's score is not read yet: the sums of scores lack it
  std::int64_t untrained = -1;  ///< the batch that was taken but not trained because of a stop; -1: none
};

}  // namespace muster
