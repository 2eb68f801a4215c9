#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "muster/parallel/strategies/codec.h"
#include "muster/parallel/strategies/period.h"

namespace muster {

/// Averaging whose communication overlaps with training. Every `frequency` iterations a merge lands. It was
/// launched `delay` iterations earlier, with the parameters that the replicas had then, and the workers have
/// continued since. Landing changes the outer parameters W, the user's model, by the mean of what was sent,
/// as OuterAveraging does. `landing` says what the new base, W, or with `nesterov` W + momentum D, does to
/// the replicas. At the end of an epoch and at a stop everything lands, also what was trained since the
/// launch. A period that is not longer than the delay (as in the first part of Period::postLocal) merges at
/// once.
///
/// Statistics and averaged updater states are merged when the parameters land, without a delay.
struct OverlappedAveraging {
  /// The worker takes the new base and keeps what it has trained since the launch: x = base + (x - sent).
  /// With rate 1, momentum 0 and one worker this is plain training. Sources: Shen et al. 2019
  /// (CoCoD-SGD); the asynchronous averaging of Bagua (Gan et al. 2021).
  struct Delta {
    bool operator==(const Delta&) const = default;
  };
  /// The worker is pulled towards the base: x = (1 - strength) x + strength * base. Source: Wang, Liang &
  /// Joshi 2020 (Overlap-Local-SGD), where W is the anchor.
  struct Pull {
    double strength = 0.6;  ///< in [0, 1]. 0: workers train by themselves
    bool operator==(const Pull&) const = default;
  };
  /// At the launch the worker takes the outer step with its own part of the mean, (x - s) / workers. The mean
  /// lands as in Delta. Source: Kale, Douillard & Donchev 2025 (eager updates), where it lands one period
  /// after the launch.
  struct Eager {
    bool operator==(const Eager&) const = default;
  };

  Period frequency = 2;    ///< iterations of each worker from landing to landing
  std::int64_t delay = 1;  ///< iterations from launch to landing, less than the period. 0: lands at once
  std::variant<Delta, Pull, Eager> landing = Delta{};
  double rate = 1;        ///< above 0
  double momentum = 0;    ///< in [0, 1)
  bool nesterov = false;  ///< the base is the look-ahead point
  UpdaterState updaterState = UpdaterState::Average;
  Codec codec = WholeReplicas{};  ///< how parameters are sent

  /// Pull of 0.6, momentum 0.7, every 2 iterations with a delay of 1.
  static OverlappedAveraging overlapLocalSgd();
  /// DiLoCo with eager updates: rate 0.7, Nesterov momentum 0.9, updater state kept, every 500 iterations
  /// with a delay of 50.
  static OverlappedAveraging eagerDiloco();

  void validate() const;
  std::unique_ptr<Strategy> make() const;
  void fields(Fields& f);
  static std::vector<NamedStrategy> named(int workers);
};

}  // namespace muster
