#pragma once

#include <memory>
#include <vector>

#include "muster/parallel/strategies/codec.h"
#include "muster/parallel/strategies/period.h"

namespace muster {

/// At each merge all state becomes the weighted mean over the replicas (statistics by their
/// own rule). Source: McDonald et al. 2010 (parameter mixing); Stich 2019 (local SGD).
struct Averaging {
  /// Iterations of each worker between merges.
  Period frequency = 1;
  UpdaterState updaterState = UpdaterState::Average;
  /// Measure before each merge how far the replicas are from their mean (MergeEvent::divergence): one more
  /// pass over the parameters.
  bool measureDivergence = false;
  /// How parameters are sent. With a codec the rule is OuterAveraging at rate 1, which has the same result.
  Codec codec = WholeReplicas{};

  void validate() const;
  std::unique_ptr<Strategy> make() const;
  void fields(Fields& f);
  static std::vector<NamedStrategy> named(int workers);
};

}  // namespace muster
