#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/parallel/strategies/codec.h"

namespace muster {

/// The step of an outer optimiser, for strategies that are built on it: the mean m of the replicas moves the
/// outer parameters W, which the merged copy holds, with a momentum D in units of parameters.
///
///     D = momentum D + rate (m - s);   W = W + D
///
/// s is the base, from which workers train: W, and with `nesterov` W + momentum D. Rate 1 without momentum
/// copies the mean.
struct OuterStep {
  double rate = 1;
  double momentum = 0;
  bool nesterov = false;

  /// From the options of a rule that is built on it.
  template <typename Options>
  static OuterStep of(const Options& options) {
    return {.rate = options.rate, .momentum = options.momentum, .nesterov = options.nesterov};
  }
  /// @param rule  begins the message. @throws InvalidArgument naming the option out of range.
  void validate(std::string_view rule) const;
  /// As in "rate 0.7, Nesterov momentum 0.9".
  std::string describe() const;
  /// Adds the blocks that it needs. @param meanInFlight  the mean is taken in one round and used in another.
  void declare(std::vector<StrategyBlock>& blocks, bool meanInFlight) const;

  /// Mean, step, and replicas at the base, in one pass over them: as `takeMean`, `apply` and `writeBack`, of
  /// whole replicas that all are on the CPU and added up in one sum.
  /// @param scale  as of `apply`.
  void takeAtOnce(std::span<const double> weights, double scale, Verbs& verbs) const;
  /// m becomes the weighted mean of what the workers send.
  /// @param remember  as of CodedReplicas::mean.
  /// @param later  the fragment lands in a later round: m is there then.
  void takeMean(CodedReplicas& sending, std::span<const double> weights, double remember,
                const Fragment& fragment, Verbs& verbs, bool later = false) const;
  /// Takes the step. @param scale  multiplies the momentum, as when it follows the learning rate.
  void apply(const Fragment& fragment, Verbs& verbs, double scale = 1) const;
  /// The base is merged copy + ahead() * look(verbs).
  double ahead() const { return nesterov ? momentum : 0; }
  /// What D is multiplied by. The mean's move is measured from the base, which is W + momentum D with
  /// Nesterov.
  double decay(double scale) const { return momentum * (nesterov ? scale - rate : scale); }
  /// D; without momentum the merged copies, in D's place in sums with factor 0.
  std::span<const Tensor> look(Verbs& verbs) const;
  /// The replicas move to the base: replica = keep * replica + (1 - keep) * base.
  void writeBack(double keep, const Fragment& fragment, Verbs& verbs) const;
};

}  // namespace muster
