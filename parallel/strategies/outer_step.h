#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/parallel/strategies/coded_replicas.h"

namespace muster {

/// The step of an outer optimiser, for strategies that use one: see OuterAveraging. The merged copy holds W.
/// Workers train from the base s.
struct OuterStep {
  /// Names of blocks.
  static constexpr const char *kMomentum = "outer momentum", *kMean = "mean";

  double rate = 1;
  double momentum = 0;
  bool nesterov = false;

  /// The step for the options of a rule.
  template <typename Options>
  static OuterStep of(const Options& options) {
    return {.rate = options.rate, .momentum = options.momentum, .nesterov = options.nesterov};
  }
  /// @param rule  begins the message. @throws InvalidArgument naming the option out of range.
  void validate(std::string_view rule) const;
  /// As in "rate 0.7, Nesterov momentum 0.9".
  std::string describe() const;
  /// The blocks that the step needs. @param meanInFlight  the mean is formed in one round and used in
  /// another.
  std::vector<StrategyBlock> blocks(bool meanInFlight) const;

  /// Does `takeMean`, `apply` and `writeBack` in one pass over whole replicas. Needs Topology::oneSum.
  void takeAtOnce(std::span<const double> weights, double scale, MergeOps& ops) const;
  /// Sets m to the weighted mean of what the workers send.
  /// @param remember  see CodedReplicas::mean.
  /// @param later  the fragment lands in a later round: m is complete then.
  void takeMean(CodedReplicas& sending, std::span<const double> weights, double remember,
                const Fragment& fragment, MergeOps& ops, bool later = false) const;
  /// Takes the step. @param scale  multiplies the momentum, for a momentum that follows the learning rate.
  void apply(const Fragment& fragment, MergeOps& ops, double scale = 1) const;
  /// The base is merged copy + ahead() * lookAhead(ops).
  double ahead() const { return nesterov ? momentum : 0; }
  /// The factor of D in a step. With Nesterov the mean's move is measured from W + momentum D, the base.
  double decay(double scale) const { return momentum * (nesterov ? scale - rate : scale); }
  /// D; without momentum the merged copies, which take D's place in sums with factor 0.
  std::span<const Tensor> lookAhead(MergeOps& ops) const;
  /// Moves the replicas to the base: replica = keep * replica + (1 - keep) * base.
  void writeBack(double keep, const Fragment& fragment, MergeOps& ops) const;
};

}  // namespace muster
