#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "muster/parallel/strategies/codec.h"
#include "muster/parallel/strategies/period.h"

namespace muster {

/// Outer averaging in fragments: the parameters' tensors are divided into `fragments` of about equal size
/// (`fragmentsOf`), which are merged in turn: each once in `frequency` iterations, so a merge sends only one
/// fragment. A launch sends the replicas' values; `delay` iterations later the fragment lands: the mean m of
/// what was sent changes the outer parameters W, with a momentum D,
///
///     D = momentum D + rate (m - s);   W = W + D;   x = (1 - mixing) s' + mixing x
///
/// all on the fragment's elements, where s is the base, W, and with `nesterov` W + momentum D, s' the new
/// base and x each replica. The user's model is W. Updater state and statistics are merged with the last
/// fragment. Listeners get "fragment" (MergeEvent::values), the number of the fragment that landed: the last
/// of several, -1 for none. Sources: Douillard et al. 2025 (Streaming DiLoCo); fragments of equal size as in
/// Decoupled DiLoCo 2026.
struct StreamingOuter {
  /// Iterations of each worker in which every fragment is merged once: a multiple of `fragments`. If the
  /// period changes, a fragment's turn is a whole number of iterations, rounded down, and at least 1; a turn
  /// that is not longer than the delay merges at once.
  Period frequency = 10;
  int fragments = 2;       ///< 1 to 64, and at most as many as the model has tensors
  std::int64_t delay = 1;  ///< iterations from launch to landing, less than frequency / fragments
  /// The share of its own values that a worker keeps when a fragment lands, in [0, 1]. With 1 the replicas
  /// train by themselves.
  double mixing = 0.5;
  double rate = 1;        ///< above 0
  double momentum = 0;    ///< in [0, 1)
  bool nesterov = false;  ///< the base is the look-ahead point
  UpdaterState updaterState = UpdaterState::Average;
  Codec codec = WholeReplicas{};  ///< how parameters are sent

  /// Streaming DiLoCo: rate 0.7, Nesterov momentum 0.9, updater state kept, four fragments in 100 iterations
  /// with a delay of 5; its workers use AdamW.
  static StreamingOuter diloco();

  void validate() const;
  std::unique_ptr<Strategy> make() const;
  void fields(Fields& f);
  static std::vector<NamedStrategy> named(int workers);
};

}  // namespace muster
