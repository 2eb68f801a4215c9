#pragma once

#include <vector>

#include "muster/parallel/strategies/strategy.h"

namespace muster {

/// Every `frequency` iterations all state becomes the weighted mean over the replicas (statistics by their
/// own rule). Source: McDonald et al. 2010 (parameter mixing); Stich 2019 (local SGD).
///
/// Up to iteration `synchronousUntil` of the model's life it does so every iteration: post-local SGD. Source:
/// Lin et al. 2020, "Don't use large mini-batches, use local SGD".
class PeriodicAveraging final : public Strategy {
 public:
  /// @throws InvalidArgument unless frequency >= 1 and synchronousUntil >= 0.
  explicit PeriodicAveraging(std::int64_t frequency, std::int64_t synchronousUntil = 0,
                             bool measureDivergence = false);
  void begin(const Exchange& exchange) override;
  std::int64_t iterationsUntilMeeting(const MeetingInfo& info) override;
  bool stage(Exchange& exchange, Context& context) override;
  std::int64_t meet(int participant, const Round& round, Exchange& exchange, Context& context) override;
  double divergence() const override;
  std::string describe() const override;

 private:
  const std::int64_t frequency_, synchronousUntil_;
  const bool measureDivergence_;
  std::vector<Spread> spreads_;  // [worker] of its slice of the parameters
};

}  // namespace muster
