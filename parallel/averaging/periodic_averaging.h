#pragma once

#include "muster/parallel/averaging/strategy.h"

namespace muster {

/// Every `frequency` iterations all state becomes the weighted mean over the replicas (statistics by their
/// own rule). Source: McDonald et al. 2010 (parameter mixing); Stich 2019 (local SGD).
class PeriodicAveraging final : public Strategy {
 public:
  /// @throws InvalidArgument unless frequency >= 1.
  explicit PeriodicAveraging(std::int64_t frequency);
  std::int64_t iterationsUntilMeeting(const MeetingInfo& info) override;
  void meet(int participant, Collective& collective, std::span<const double> weights,
            Context& context) override;
  std::string describe() const override;

 private:
  std::int64_t frequency_;
};

}  // namespace muster
