#pragma once

#include <cstdint>

namespace muster {

/// What a worker brings to the end of a round.
struct Contribution {
  double scoreSum = 0;          ///< of its steps since the last merge of its own, each times its weight
  double weight = 0;            ///< their loss normaliser
  double plainScoreSum = 0;     ///< of those steps, without weights
  std::int64_t batches = 0;     ///< likewise
  std::int64_t examples = 0;    ///< likewise
  std::int64_t iteration = 0;   ///< after the last of them: iterations finished
  double largest = 0;           ///< magnitude in its replica, where that was looked at
  bool ended = false;           ///< it has had its last batch of the epoch
  bool late = false;            ///< its last step's score is still to be read: the sums of scores lack it
  bool staged = false;          ///< its merge was staged, and it has trained on since
  std::int64_t untrained = -1;  ///< the batch that it took and did not train, because of a stop; -1: none
};

}  // namespace muster
