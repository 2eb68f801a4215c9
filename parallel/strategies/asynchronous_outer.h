#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/base/fields.h"
#include "muster/parallel/strategies/codec.h"
#include "muster/parallel/strategies/outer_step.h"
#include "muster/parallel/strategies/period.h"

namespace muster {

/// The clock that orders arrivals of workers that do not wait for each other.
enum class ArrivalClock {
  Virtual,  ///< by declared speeds: the same bits in every run
  Wall      ///< real time; each worker takes the next batch when it asks, so no two runs are alike
};

template <>
struct EnumNames<ArrivalClock> {
  static constexpr std::array<std::pair<ArrivalClock, std::string_view>, 2> kNames{
      {{ArrivalClock::Virtual, "virtual"}, {ArrivalClock::Wall, "wall"}}};
};

/// Outer steps without rounds: no worker waits for the others. A worker takes the global parameters W as its
/// start s, trains `frequency` iterations, arrives with its parameters x, changes W, and continues from it.
/// With N arrivals in an outer step:
///
///     each arrival:  d = (rate / N) (x - s);  W = W + d;  A = A + d
///     at the N-th:   W = W + momentum D;      D = momentum D + A;  A = 0
///
/// The user's model is W. Arrivals that are merged together count one each, with the mean of their x,
/// weighted by the loss normaliser; one whose examples were all masked does not count. By `speeds` every run
/// has the same bits; on the wall clock runs differ. Layers that need all workers' batches in each step
/// (BatchNorm with `synchronised`) are an error in the first step. Listeners get "arrivals", "staleness" and
/// "period". Ends of epochs, waiting and checkpoints: examples/docs/rules.md, "Asynchronous outer steps".
/// Source: Liu et al. 2024 (Delayed Nesterov).
struct AsynchronousOuter {
  /// A worker's iterations between its arrivals, chosen when it continues. Not AdaComm: on the virtual clock
  /// batches are dealt before there are scores.
  Period frequency = 1;
  double rate = 1;        ///< above 0
  double momentum = 0;    ///< in [0, 1)
  bool nesterov = false;  ///< workers continue from the look-ahead point W + momentum D
  /// N: between 1 and the number of workers. 0: the number of workers. If arrivals that are merged together
  /// pass N, the step is complete, and the count starts again at 0.
  std::int64_t arrivalsPerStep = 0;
  ArrivalClock clock = ArrivalClock::Virtual;
  /// Each worker's iterations in a unit of time, 1e-6 to 1e6; only `grace` uses more than their ratios.
  /// Empty: all 1. On the wall clock only for `fewerIterationsIfSlow`.
  std::vector<double> speeds = {};
  /// A slower worker has fewer iterations between arrivals, floor(frequency * speed / fastest speed) and at
  /// least 1, so that all arrive at about the same time. Source: Liu et al. 2024 (dynamic local updates).
  bool fewerIterationsIfSlow = false;
  /// A worker that has arrived c times continues once every other has arrived c - staleness times: with 0 all
  /// wait for all. Empty: no worker ever waits. Source: Ho et al. 2013 (stale synchronous parallel).
  std::optional<std::int64_t> staleness = {};
  /// Arrivals less than this time after the first one are merged together. 0: each by itself, also those that
  /// have waited for `staleness` (but with staleness 0 all are merged together). Infinity: all workers'
  /// together, as in OuterAveraging. On the virtual clock only: on the wall clock those that wait are merged
  /// together.
  double grace = 0;
  UpdaterState updaterState = UpdaterState::Keep;  ///< or Reset, at a worker's arrivals
  Codec codec = {};                                ///< how a worker sends x - s

  /// Delayed Nesterov with DiLoCo's numbers: rate 0.7, Nesterov momentum 0.9, every 50 iterations, fewer for
  /// slow workers.
  static AsynchronousOuter delayedNesterov(std::vector<double> speeds = {});

  void validate() const;
  std::unique_ptr<Strategy> make() const;
  void fields(Fields& f);
  static std::vector<NamedStrategy> named(int workers);
};

}  // namespace muster
