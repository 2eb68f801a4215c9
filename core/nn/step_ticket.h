#pragma once

#include <cstdint>

namespace muster {

/// What a step's loss came to.
struct StepScore {
  double score = 0;   ///< mean loss over the batch, plus the regularisation penalty after `step`
  double weight = 0;  ///< the loss normaliser: examples, or unmasked time steps
};

/// Holds the scores of a model's steps that may still run on a device. Used by one thread at a time, as the
/// model is.
class PendingScores {
 public:
  virtual ~PendingScores() = default;
  /// Whether `wait` would return at once.
  virtual bool ready(std::uint64_t step) = 0;
  /// Waits for step number `step`. @throws what the step failed with; InvalidArgument if so many steps came
  /// after it that its score is no longer kept.
  virtual StepScore wait(std::uint64_t step) = 0;
};

/// Stands for a step that may still run on a device: its score is read when the caller needs it. A value.
class StepTicket {
 public:
  explicit StepTicket(StepScore score) : score_(score) {}
  /// @param pending  outlives the ticket's use.
  StepTicket(PendingScores& pending, std::uint64_t step) : pending_(&pending), step_(step) {}

  /// Whether the step was computed before the ticket was made. Asks no device.
  bool known() const { return !pending_; }
  /// Whether `wait` would return at once.
  bool ready() const { return !pending_ || pending_->ready(step_); }
  /// Waits for the step if it still runs. May be called repeatedly, but not after 60 further steps.
  /// @throws what the step failed with: InvalidArgument for a label out of range, DeviceFailure.
  StepScore wait() const { return pending_ ? pending_->wait(step_) : score_; }

 private:
  StepScore score_ = {};
  PendingScores* pending_ = nullptr;
  std::uint64_t step_ = 0;
};

/// Throws NonFiniteScore unless the score is finite.
void requireFinite(const StepScore& score);

}  // namespace muster
