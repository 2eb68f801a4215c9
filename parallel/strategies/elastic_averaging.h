#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "muster/parallel/strategies/codec.h"
#include "muster/parallel/strategies/period.h"

namespace muster {

/// Elastic averaging: a centre c, which is the user's model, follows the mean m of the replicas x_w. Replicas
/// stay different, but each merge pulls them towards the centre (examples/docs/rules.md).
///
///     c = c + centreRate (m - c);   x_w = x_w - elasticity (x_w - c)
///
/// Both formulas use the values before the merge; with `centreFirst` the second one uses the new c. m is
/// weighted by what each worker has trained since the last merge; every replica is pulled, also one that has
/// not trained. EASGD is the default; EAMSGD is EASGD with `Nesterovs` as updater. With `measureDistance`
/// listeners get "distance to the centre" (MergeEvent::values) before the merge, sqrt(sum_w |x_w - c|^2 /
/// workers) / |c|. Sources: Zhang, Choromanska & LeCun 2015, "Deep learning with elastic averaging SGD"; SMA
/// as in KungFu (Mai et al. 2020) after Koliousis et al. 2019 (Crossbow), without the centre's momentum.
struct ElasticAveraging {
  Period frequency = 10;    ///< iterations of each worker between merges
  double centreRate = 0.9;  ///< in [0, 1]
  /// In [0, 1]; empty: centreRate / workers.
  std::optional<double> elasticity = {};
  bool centreFirst = false;
  UpdaterState updaterState = UpdaterState::Keep;
  Codec codec = WholeReplicas{};  ///< how parameters are sent
  bool measureDistance = false;   ///< costs a pass over the replicas, and on GPUs waits for it

  /// Every iteration the replicas move this far towards their mean.
  static ElasticAveraging sma(double elasticity = 0.1);

  void validate() const;
  std::unique_ptr<Strategy> make() const;
  void fields(Fields& f);
  static std::vector<NamedStrategy> named(int workers);
};

}  // namespace muster
