#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "muster/parallel/strategies/outer_step.h"

namespace muster {

/// Outer steps without rounds: no worker waits for the others. A worker trains `frequency` iterations from
/// the point s that it took, arrives with its parameters x, moves the global parameters W, takes them, and
/// goes on. With N arrivals in an outer step:
///
///     each arrival:  d = (rate / N) (x - s);  W = W + d;  A = A + d
///     at the N-th:   W = W + momentum D;      D = momentum D + A;  A = 0
///
/// N arrivals from the same point move W as one step of OuterAveraging does. The user's model is
/// W. Momentum that comes with every N-th arrival alone is Delayed Nesterov (Liu et al. 2024); with N = 1
/// each arrival is a Nesterov step, which then needs about a tenth of the rate. Arrivals that are merged
/// together count one each, and d is that of their mean, weighted by the loss normaliser.
///
/// When a worker that should arrive has no batch left, the epoch ends: all arrive together, and complete an
/// outer step; likewise at a stop. An iteration is W batches. Each worker keeps its updater's state, and Adam
/// counts each worker's own updates. Of statistics (BatchNorm) the mean of n arrivals replaces n / W of the
/// global ones. Layers that need all workers' batches in each step (BatchNorm with `synchronised`) are
/// refused by the first step.
///
/// Time is virtual, given by `speeds`: the same bits in every run. In real time a worker waits at its arrival
/// for those that come before it; with merged listeners, or on several devices, all meet at each landing, for
/// the same bits. Listeners get "arrivals", the arrivals merged at once, and "staleness", how often W had
/// moved since they took it (the most of them).
struct AsynchronousOuter {
  /// A worker's iterations between its arrivals. 1 to 2^40.
  std::int64_t frequency = 1;
  double rate = 1;        ///< above 0
  double momentum = 0;    ///< in [0, 1)
  bool nesterov = false;  ///< workers go on from the look-ahead point W + momentum D
  /// N: between 1 and the number of workers. 0: the number of workers. Arrivals that are merged together
  /// count at once: if they pass N, the step is complete, and the count begins anew at 0.
  std::int64_t arrivalsPerStep = 0;
  /// Of each worker, iterations in a unit of time, 1e-6 to 1e6; only their ratios count, but for `grace`.
  /// Empty: all 1.
  std::vector<double> speeds = {};
  /// A slower worker has fewer iterations between arrivals, floor(frequency * speed / fastest speed) and at
  /// least 1, so that all arrive at about the same time. Source: Liu et al. 2024 (dynamic local updates).
  bool fewerIterationsIfSlow = false;
  /// A worker that has arrived c times goes on once every other has arrived c - staleness times: with 0 all
  /// wait for all. Empty: no worker ever waits. Source: Ho et al. 2013 (stale synchronous parallel).
  std::optional<std::int64_t> staleness = {};
  /// Arrivals less than this time after the first one are merged together. 0: each by itself. Infinity: all
  /// workers' together, as in OuterAveraging.
  double grace = 0;
  UpdaterState updaterState = UpdaterState::Keep;  ///< or Reset, at a worker's arrivals

  /// Delayed Nesterov with DiLoCo's numbers: rate 0.7, Nesterov momentum 0.9, every 50 iterations, fewer for
  /// slow workers.
  static AsynchronousOuter delayedNesterov(std::vector<double> speeds = {});

  /// @throws InvalidArgument naming the option out of range.
  void validate() const;
  std::unique_ptr<Strategy> make() const;

  void fields(Fields& f);
  static std::vector<NamedStrategy> named(int workers);
};

}  // namespace muster
