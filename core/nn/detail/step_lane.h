#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "muster/core/data/batch.h"
#include "muster/core/ops/update.h"

namespace muster::detail {

/// The way of one step to the device and back: its batch and its numbers go there through pinned memory, and
/// what its losses came to comes back to it. All of it stays at its place, so that a step which goes through
/// the lane can be recorded. Made for batches of one form; one thread at a time.
class StepLane {
 public:
  /// @param like     a batch of the form: the names, element types and shapes of its tensors.
  /// @param outputs  losses of a step.
  StepLane(const Batch& like, std::size_t outputs, Context& context);

  /// Whether `batch` is of the form.
  bool fits(const Batch& batch) const;

  /// Enqueues the batch on the copy stream, behind nothing, and makes the compute stream wait for it; lists
  /// of rows are left to `fetch`. The step before must be done; `batch` may be refilled on return.
  /// @throws InvalidArgument for rows that are not there.
  void send(const Batch& batch);
  /// The last batch sent, on the device, with its stamp; whole behind `fetch`.
  const Batch& batch() const { return onDevice_; }

  /// The update's numbers, to be written before `fetch`: float64 [kUpdateNumbers] on the CPU.
  Tensor& hostUpdateNumbers() { return hostUpdateNumbers_; }
  /// Enqueues the copy of the step's numbers and of the batch's lists of rows to the device, which is one,
  /// and the gathering of what the batch names rows of; may be recorded.
  void fetch();
  /// The same for a batch that no step follows; may not be recorded.
  void fetchAlone();
  /// On the device: int64 [2], see `StepInfo::position`.
  const Tensor& position() const { return position_; }
  /// On the device.
  const Tensor& updateNumbers() const { return updateNumbers_; }

  /// On the device: where `lossInto` leaves what output `index` came to.
  Tensor& lossNumbers(std::size_t index) { return losses_[index]; }
  /// All of these: float64 [outputs * kLossNumbers].
  const Tensor& losses() const { return allLosses_; }
  /// On the device: float64 [1].
  Tensor& penalty() { return penalty_; }
  /// Enqueues the copy of losses and penalty to the CPU; may be recorded.
  void fetchResults();
  /// What was fetched, once that is done: the losses' numbers of output `index`.
  std::span<const double> hostLoss(std::size_t index) const;
  double hostPenalty() const { return hostResults_.data<double>()[hostResults_.elements() - 1]; }

 private:
  void add(const std::vector<NamedTensor>& like, std::vector<NamedTensor>& pinned,
           std::vector<NamedTensor>& there);
  void fill(const std::vector<NamedTensor>& from, std::vector<NamedTensor>& pinned,
            std::vector<NamedTensor>& there);

  Context& context_;
  Batch pinned_;
  // [feature, label, mask in turn] what rows are named of. A data set that nobody else has any more does not
  // stay on the device for the sake of a recording that no batch can fit again.
  std::vector<std::weak_ptr<const ResidentTensor>> sources_;
  Batch onDevice_;  // gathered
  struct Gathering {
    const Tensor* source;  // there as long as a batch fits
    Tensor rows, target;
  };
  std::vector<Gathering> gatherings_;  // on the device
  Event sent_, read_;
  bool copied_ = false;   // `sent_` is of a batch
  bool fetched_ = false;  // `read_` is of a batch that no step followed
  // int64: the position, the update's numbers in the others' bits, and the rows of one gathering after
  // another
  Tensor hostNumbers_, numbers_;
  Tensor hostUpdateNumbers_, position_, updateNumbers_;  // views
  Tensor hostResults_, results_;                         // float64 [outputs * kLossNumbers + 1]
  std::vector<Tensor> losses_;                           // views, likewise
  Tensor allLosses_, penalty_;                           // likewise
};

}  // namespace muster::detail
