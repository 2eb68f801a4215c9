#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/data/resident.h"

namespace muster {

/// Where a batch stands in the training, given by the dispatcher. Schedules and random streams read it and
/// nothing else, so that they do not depend on which worker takes the batch.
struct BatchStamp {
  std::int64_t sequence = 0;  ///< number of the batch in its epoch, from 0
  std::int64_t epoch = 0;     ///< epochs the model finished before, over all its `fit()` calls
  std::int64_t iteration =
      0;  ///< rounds dispatched before, over all epochs: worker w's i-th batch and worker 0's share it
  std::int64_t firstExample = 0;  ///< position in the epoch of the batch's first example

  /// For messages, which count from 1: "batch 6 of epoch 1".
  std::string toString() const;
};

struct NamedTensor {
  std::string name;
  Tensor value;
  /// Where given, `value` is int64 [N]: the rows of this tensor that the numbers are.
  std::shared_ptr<const ResidentTensor> source = {};

  /// The numbers: `value` itself, or the rows gathered on the CPU.
  Tensor gathered() const;
};

/// A minibatch: named features, labels and masks, all on the CPU with the examples as first dimension.
/// Features and labels may instead name rows of a data set that lies where networks compute
/// (`MemoryPlacement::Device`); networks and evaluations take both, whoever reads tensors himself takes
/// `NamedTensor::gathered`.
///
/// A network with one input and one output reads the first features and labels. Features are float32, or
/// uint8 which a network reads as value/255; for a layer that takes indices, int64 or uint8. Labels are int64
/// class indices [N], or float32: one-hot rows [N, C] or targets [N, F]. A label mask is float32 [N]: the
/// weight of each example, finite and at least 0; 1 where there is none.
///
/// Sequences are [N, T, ...], padded to one length T, which is one for the life of a network: the first batch
/// or the input shape decides it, and shorter sequences are padded to it. The mask called "features", float32
/// [N, T], says which steps are real (1) and which are padding (0); it holds nothing else. Where there is a
/// label at each step, labels are [N, T] or [N, T, F], and their mask, of another name, is [N, T]. One mask
/// called "features" serves the whole batch: all sequences that a network reads, by whatever names, have the
/// same T and the same padding.
///
/// A network with one output reads one label mask, of any name that does not begin as "features" does; two,
/// and a name like "feature", are refused. One with several outputs finds the labels and the mask of each by
/// the output's name, and refuses a mask with another one.
struct Batch {
  std::vector<NamedTensor> features;
  std::vector<NamedTensor> labels;
  std::vector<NamedTensor> masks;
  BatchStamp stamp;

  /// Number of examples; 0 for a batch without features.
  std::int64_t examples() const;
  /// Whether some of it names rows.
  bool namesRows() const;
  /// Makes `into` this batch with all numbers gathered, in memory of its own, which it keeps from call to
  /// call.
  void gatherInto(Batch& into) const;
  /// The mask called "features". nullptr: there is none.
  const Tensor* sequenceMask() const;
  /// The labels called `output` or, without a name, the first. nullptr: there are none.
  const NamedTensor* labelsOf(std::string_view output = {}) const;
  /// What weights the loss of predictions of this shape, [N, F] or, over time, [N, T, F]: the mask called
  /// `output` or, without a name, the first that is not called "features". Without one, that one over time;
  /// otherwise an undefined tensor: all count.
  Tensor lossMask(const Shape& predictions, std::string_view output = {}) const;
  /// Looks at the masks' values, as far as they are float32 on the CPU.
  /// @throws InvalidArgument naming the mask and the place: in "features" of what is neither 0 nor 1, in
  /// others of what is negative or not finite.
  void requireMaskValues() const;

  /// The tensor called `name`, made or resized where it has not this shape and type; recycled batches keep
  /// their memory, a smaller one that of a larger one before it. For those who fill batches.
  ///
  /// The reference is an element of `tensors`: it dangles after the next call that adds a tensor to them. Who
  /// fills several at a time keeps the Tensor by value, which is the same memory:
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
