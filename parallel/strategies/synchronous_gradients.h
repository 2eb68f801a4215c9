#pragma once

#include "muster/parallel/strategies/strategy.h"

namespace muster {

/// Every iteration the gradients become their weighted mean over the workers, and every replica applies the
/// same update to the same parameters, so that these stay equal, bit for bit. Statistics are merged by their
/// own rule. With W workers on batches of B this is one worker on batches of W B, to rounding, whatever the
/// updater, regularisation and clipping. Source: Goyal et al. 2017 (synchronous minibatch SGD).
class SynchronousGradients final : public Strategy {
 public:
  /// @throws InvalidArgument unless there are gradients for the parameters.
  void begin(const Exchange& exchange) override;
  LocalWork localWork() const override { return LocalWork::Gradient; }
  std::int64_t iterationsUntilMeeting(const MeetingInfo&) override { return 1; }
  std::int64_t meet(int participant, const Round& round, Exchange& exchange, Context& context) override;
  std::int64_t settle(int participant, const Round& round, Exchange& exchange, Context& context) override;
  std::string describe() const override { return "averaging gradients every iteration"; }
};

}  // namespace muster
