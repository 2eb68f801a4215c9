#pragma once

#include <memory>
#include <vector>

#include "muster/parallel/strategies/codec.h"
#include "muster/parallel/strategies/period.h"

namespace muster {

/// Adaptive summation: each merge adds up what the replicas have changed since the last one, pair by pair,
/// for each parameter tensor by itself:
///
///     a + b = (1 - a.b / (2 a.a)) a + (1 - a.b / (2 b.b)) b
///
/// first worker 0 with 1, 2 with 3, ..., then the sums of neighbours, until one is left. Dot products are in
/// float64; a change of 0 leaves the other one as it is. Workers are not weighted by what they have trained.
/// The number of workers must be a power of two.
///
/// Listeners get "gain" (MergeEvent::values): the mean over the parameters of the factors' sum, 1 if all
/// changes are equal, the number of workers if all are orthogonal.
///
/// A merge reads W - 1 pairs of replicas twice, and on GPUs waits for dot products, so choose long rounds.
/// Source: Maleki et al. 2020, "Scaling distributed training with adaptive summation".
struct Adasum {
  Period frequency = 10;  ///< iterations of each worker between merges
  UpdaterState updaterState = UpdaterState::Average;
  /// How workers send their changes; the sums are of what was sent. Not over several nodes.
  Codec codec = {};

  void validate() const;
  std::unique_ptr<Strategy> make() const;
  void fields(Fields& f);
  static std::vector<NamedStrategy> named(int workers);
};

}  // namespace muster
