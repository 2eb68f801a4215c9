#pragma once

#include <memory>
#include <vector>

#include "muster/parallel/strategies/codec.h"
#include "muster/parallel/strategies/period.h"

namespace muster {

/// Averaging with an outer optimiser: at each merge the mean m of the replicas moves the outer parameters W,
/// with a momentum D that remembers earlier moves.
///
///     D = momentum D + rate (m - s);   W = W + D
///
/// s is where the workers started: W, and with `nesterov` W + momentum D. The user's model is W. D has the
/// units of parameters; `rate` multiplies the mean (not the sum) of the replicas' changes. With rate 1 and
/// momentum 0 it gives the bits of Averaging. Sources: Chen & Huo 2016 (BMUF); Wang et al. 2019 (SlowMo);
/// Douillard et al. 2023 (DiLoCo); Zhang et al. 2019 (Lookahead).
struct OuterAveraging {
  Period frequency = 1;   ///< iterations of each worker between merges
  double rate = 1;        ///< above 0
  double momentum = 0;    ///< in [0, 1)
  bool nesterov = false;  ///< workers continue from the look-ahead point
  /// Multiplies the momentum by the ratio of the inner learning rates of this merge and the one before, as
  /// SlowMo does: without effect while the learning rate is constant.
  bool followLearningRate = false;
  UpdaterState updaterState = UpdaterState::Average;
  Codec codec = WholeReplicas{};  ///< how parameters are sent
  /// Reports "outer step" to listeners (MergeEvent::values): how far W moved, relative to W before. Costs two
  /// passes over W, and on GPUs waits.
  bool measureStep = false;

  /// Blockwise model update filtering: momentum 1 - 1 / workers, updater state reset, every 50 iterations.
  static OuterAveraging bmuf(int workers, bool nesterov = false);
  /// Slow momentum: follows the learning rate, updater state kept, every 48 iterations.
  static OuterAveraging slowMo(double momentum = 0.5);
  /// Rate 0.7, Nesterov momentum 0.9, updater state kept, every 500 iterations; its workers use AdamW.
  static OuterAveraging diloco();
  /// Moves 0.8 of the way to the replicas' mean, updater state kept, every 5 iterations.
  static OuterAveraging lookahead();

  void validate() const;
  std::unique_ptr<Strategy> make() const;
  void fields(Fields& f);
  static std::vector<NamedStrategy> named(int workers);
};

}  // namespace muster
