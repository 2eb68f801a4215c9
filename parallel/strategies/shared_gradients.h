#pragma once

#include <memory>
#include <vector>

#include "muster/parallel/strategies/strategy.h"
#include "muster/parallel/strategies/threshold_rule.h"

namespace muster {

/// Every iteration each worker sends the large elements of its update, as plus or minus its threshold, and
/// all apply the weighted mean of these messages to the same parameters, which so stay equal. What a worker
/// has not sent, its residual, is added to its next updates. Updater states are each worker's own.
///
/// A resynchronisation sends the residuals whole, so that nothing is withheld any more, and averages updater
/// states and statistics; each worker counts by what it has trained since the last one. It comes at the end
/// of each epoch, at a stop, and every `resynchronizationFrequency` iterations. Between two of them the
/// shadow holds the parameters as they are, updater state and statistics as they were at the last one. One
/// worker exchanges nothing: it takes plain steps.
///
/// The rule of scale: the messages' mean, not their sum, so a learning rate means what it means with
/// synchronous gradients. (Deeplearning4j adds them up, which multiplies it by the number of workers.)
/// Source: Strom 2015; the residual is the error feedback of Seide et al. 2014.
class SharedGradients final : public Strategy {
 public:
  /// @throws InvalidArgument naming the option out of range.
  explicit SharedGradients(SharedGradientsOptions options);
  ~SharedGradients() override;

  /// @throws InvalidArgument unless the parameters are float32, and at most 2^31 - 1.
  void begin(const Exchange& exchange) override;
  std::int64_t iterationsUntilMeeting(const MeetingInfo&) override { return 1; }
  void contribute(int participant, double weight, Exchange& exchange, Context& context) override;
  bool stage(Exchange& exchange, Context& context) override {
    return senders_.empty() && exchange.stage(context);
  }
  std::int64_t meet(int participant, const Round& round, Exchange& exchange, Context& context) override;
  bool pending() const override { return pending_; }
  /// The drift: |mean residual| / |parameters| at a resynchronisation, 0 between.
  double divergence() const override { return relativeDistance(drifts_); }
  std::string describe() const override;

 private:
  struct Sender;

  bool resynchronizes(const Round& round) const;
  std::int64_t resynchronize(int participant, Exchange& exchange, Context& context);

  const SharedGradientsOptions options_;
  std::vector<std::unique_ptr<Sender>> senders_;   // [worker] used by its worker until all have gathered
  std::vector<const ThresholdMessage*> messages_;  // [worker]
  std::vector<Tensor> residuals_;                  // [worker]
  std::vector<Spread> drifts_;                     // [worker] of its slice; written in meetings
  bool pending_ = false;                           // written by worker 0 in meetings
};

}  // namespace muster
