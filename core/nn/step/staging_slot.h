#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "muster/core/data/batch.h"
#include "muster/core/nn/step/step_results.h"
#include "muster/core/ops/update.h"

namespace muster::detail {

/// Pinned and device memory for the inputs and results of one step: the batch and the step's numbers are
/// copied to the device, the losses are copied back. The addresses never change, so a step that uses the slot
/// can be recorded. For batches of one form; one thread at a time.
class StagingSlot {
 public:
  /// @param like     a batch of the form: the names, element types and shapes of its tensors.
  /// @param outputs  number of losses of a step.
  StagingSlot(const Batch& like, std::size_t outputs, Context& context);

  /// Whether `batch` has this form.
  bool fits(const Batch& batch) const;

  /// Enqueues the copy of the batch on the copy stream and makes the compute stream wait for it; `fetch`
  /// copies lists of rows. The previous step must be done; `batch` may be refilled on return.
  /// @throws InvalidArgument if a row does not exist.
  void send(const Batch& batch);
  /// The last batch sent, on the device, with its stamp; complete after `fetch`.
  const Batch& batch() const { return onDevice_; }

  /// The update's numbers, to be written before `fetch`: float64 [kUpdateNumbers] on the CPU.
  Tensor& hostUpdateNumbers() { return hostUpdateNumbers_; }
  /// Enqueues one copy of the step's numbers and the batch's lists of rows, then gathers these rows of the
  /// resident data set. May be recorded.
  void fetch();
  /// Like `fetch`, for a batch without a step. Must not be recorded.
  void fetchAlone();
  /// On the device: int64 [2], see `StepInfo::position`.
  const Tensor& position() const { return position_; }
  /// On the device.
  const Tensor& updateNumbers() const { return updateNumbers_; }

  /// On the device: float64 [1], the number of examples in the batch.
  const Tensor& examples() const { return examples_; }

  /// Where the step writes its results.
  StepResults& results() { return results_; }
  const StepResults& results() const { return results_; }

 private:
  void add(const std::vector<NamedTensor>& like, std::vector<NamedTensor>& pinned,
           std::vector<NamedTensor>& there);
  void fill(const std::vector<NamedTensor>& from, std::vector<NamedTensor>& pinned,
            std::vector<NamedTensor>& there);

  Context& context_;
  Batch pinned_;
  // [features, then labels, then masks] the resident tensors that rows index. Weak: a recording must not keep
  // a data set on the device after its owners release it.
  std::vector<std::weak_ptr<const ResidentTensor>> sources_;
  Batch onDevice_;  // gathered
  struct Gathering {
    const Tensor* source;  // valid while a batch fits
    Tensor rows, target;
  };
  std::vector<Gathering> gatherings_;  // on the device
  Event sent_, read_;
  bool copied_ = false;   // `sent_` belongs to a batch
  bool fetched_ = false;  // `read_` belongs to a batch without a step
  // int64: the position, the bits of the update's float64 numbers, the rows of each gathering
  Tensor hostNumbers_, numbers_;
  Tensor hostUpdateNumbers_, position_, updateNumbers_;  // views
  StepResults results_;
  Tensor examples_;
};

}  // namespace muster::detail
