#pragma once

#include <cstdint>
#include <optional>

namespace muster {

/// The result of a step's loss.
struct StepScore {
  double score = 0;   ///< mean loss over the batch, plus the regularisation penalty after `step`
  double weight = 0;  ///< the loss normaliser: examples, or unmasked time steps
};

/// Holds the scores of a model's steps, which may still run on a device. One thread at a time, as the model.
class PendingScores {
 public:
  virtual ~PendingScores() = default;
  /// Whether `wait` would return at once.
  virtual bool ready(std::uint64_t step) = 0;
  /// Waits for step number `step`. @throws the step's exception; InvalidArgument if the score is no longer
  /// kept.
  virtual StepScore wait(std::uint64_t step) = 0;
};

/// A step that may still run on a device; the caller reads its score when needed. A value.
class StepTicket {
 public:
  explicit StepTicket(StepScore score) : score_(score) {}
  /// @param pending  must outlive the ticket's use.
  /// @param weight   the score's, if it is known before the step is done.
  StepTicket(PendingScores& pending, std::uint64_t step, std::optional<double> weight = {})
      : weight_(weight), pending_(&pending), step_(step) {}

  /// Whether the step was already computed when the ticket was made. Queries no device.
  bool known() const { return !pending_; }
  /// Whether `wait` would return at once.
  bool ready() const { return !pending_ || pending_->ready(step_); }
  /// The score's weight, if it is known without waiting.
  std::optional<double> weight() const { return pending_ ? weight_ : score_.weight; }
  /// Waits for the step if it still runs. May be called repeatedly, but not after 60 further steps.
  /// @throws the step's exception: InvalidArgument for a label out of range, DeviceFailure.
  StepScore wait() const { return pending_ ? pending_->wait(step_) : score_; }

 private:
  StepScore score_ = {};
  std::optional<double> weight_ = {};
  PendingScores* pending_ = nullptr;
  std::uint64_t step_ = 0;
};

/// Throws NonFiniteScore unless the score is finite.
void requireFinite(const StepScore& score);

}  // namespace muster
