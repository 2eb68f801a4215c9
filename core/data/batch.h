#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/data/resident.h"

namespace muster {

/// The position of a batch in the training, set by the dispatcher. Schedules and random streams read only the
/// stamp, so they do not depend on which worker gets the batch.
struct BatchStamp {
  std::int64_t sequence = 0;  ///< number of the batch in its epoch, from 0
  std::int64_t epoch = 0;     ///< epochs that the model finished before, over all its `fit()` calls
  std::int64_t iteration =
      0;  ///< rounds dispatched before, over all epochs; the i-th batches of all workers share it
  std::int64_t firstExample = 0;  ///< position of the batch's first example in the epoch
  /// Number of updates including this one, if workers count their own; 0: as Model::updates says.
  std::int64_t update = 0;

  /// For messages, counted from 1: "batch 6 of epoch 1".
  std::string toString() const;
};
/// A tensor of a batch, with the name of its input or output.
struct NamedTensor {
  std::string name;
  Tensor value;
  /// If set, `value` is int64 [N]: row numbers of this tensor.
  std::shared_ptr<const ResidentTensor> source = {};

  /// `value`, or the rows gathered on the CPU.
  Tensor gathered() const;
};

/// A minibatch: named features, labels and masks, all on the CPU with the examples as first dimension. With
/// `MemoryPlacement::Device`, features and labels may hold row numbers of a data set on the device. Networks
/// and evaluations take both; code that reads tensors itself calls `NamedTensor::gathered`.
///
/// A network with one input and one output reads the first features and labels. Features are float32, or
/// uint8, which a network reads as value/255; for a layer that takes indices, int64 or uint8. Labels are
/// int64 class indices [N], or float32: one-hot rows [N, C] or targets [N, F]. A label mask is float32 [N]:
/// the weight of each example, finite and at least 0; without a mask all weights are 1.
///
/// Sequences are [N, T, ...], padded to one T, which the first batch or the input shape fixes for a network;
/// a shape with T 0 leaves it to each batch. The mask called "features", float32 [N, T], says which steps are
/// real (1) and which are padding (0), and nothing else. With a label at each step, labels are [N, T] or
/// [N, T, F], and their mask, of another name, is [N, T]. One mask called "features" serves the whole batch:
/// all its sequences have the same T and the same padding.
///
/// A network with one output reads one label mask, of any name that does not begin with "feature"; two masks
/// are refused. A network with several outputs finds labels and mask of each output by its name, and refuses
/// other masks.
struct Batch {
  std::vector<NamedTensor> features;
  std::vector<NamedTensor> labels;
  std::vector<NamedTensor> masks;
  BatchStamp stamp;
  /// If the batch was joined from several (TrainingOptions::accumulate): the examples of each, in order. Else
  /// empty.
  std::vector<std::int64_t> parts = {};

  /// Number of examples; 0 for a batch without features.
  std::int64_t examples() const;
  /// Whether some tensors hold row numbers.
  bool namesRows() const;
  /// Drops all tensors' memory, and keeps their names for the next ones.
  void release();
  /// Makes `into` this batch with all rows gathered. `into` keeps its memory from call to call.
  void gatherInto(Batch& into) const;
  /// The mask called "features"; nullptr if there is none.
  const Tensor* sequenceMask() const;
  /// The labels called `output` or, without a name, the first labels; nullptr if there are none.
  const NamedTensor* labelsOf(std::string_view output = {}) const;
  /// The mask that weights the loss of predictions of this shape, [N, F] or [N, T, F]: the mask called
  /// `output` or, without a name, the first one not called "features"; else, for [N, T, F], the mask
  /// "features"; else an undefined tensor: all weights are 1.
  Tensor lossMask(const Shape& predictions, std::string_view output = {}) const;
  /// Checks the values of the masks that are float32 on the CPU.
  /// @throws InvalidArgument naming the mask and the place: in "features", a value other than 0 and 1; in
  ///         other masks, a value that is negative or not finite.
  void requireMaskValues() const;

  /// The tensor called `name`, created or resized to this shape and type. Recycled batches keep their memory,
  /// and a smaller batch that of a larger one. For code that fills batches.
  ///
  /// The reference is an element of `tensors` and dangles after the next call that adds a tensor. To fill
  /// several tensors at a time, keep a Tensor by value, which refers to the same memory:
  ///
  /// ```cpp
  /// Tensor left = Batch::ensure(batch.features, "left", {n, 8});  // not Tensor&
  /// Tensor right = Batch::ensure(batch.features, "right", {n, 8});
  /// ```
  static Tensor& ensure(std::vector<NamedTensor>& tensors, std::string_view name, const Shape& shape,
                        DType dtype = DType::Float32);
  /// As `ensure`, and drops every other tensor: a batch may come from another iterator.
  static Tensor& ensureOnly(std::vector<NamedTensor>& tensors, std::string_view name, const Shape& shape,
                            DType dtype = DType::Float32);
};

}  // namespace muster
