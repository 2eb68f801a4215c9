#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "muster/core/data/data_loader.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// Examples in memory: one row each in both tensors, as InMemoryDataSetIterator takes them.
struct LabelledTensors {
  Tensor features, labels;
};

/// Row numbers of two disjoint parts of a data set, each in ascending order.
struct RowSplit {
  std::vector<std::int64_t> first, second;
};

/// Divides the rows of a data set at random, each class in equal shares: both parts have as much of every
/// class as the whole, up to one example (Hamilton's method of largest remainders). Where remainders are
/// equal the seed draws which classes have the example more: of classes of one size that are more than the
/// second part has rows, each is as likely as another to be in it. The rows depend only on the arguments.
///
/// @param classes  [N], the class of each row.
/// @param count    rows of the first part, the one to train with; 1 to N.
/// @throws InvalidArgument for another count, or if `count` is less than the number of classes, so that a
///         class would have no example to train with.
RowSplit splitRows(std::span<const std::int64_t> classes, std::int64_t count, std::uint64_t seed);
/// As above, for `examples` rows without classes.
RowSplit splitRows(std::int64_t examples, std::int64_t count, std::uint64_t seed);

/// `count` rows of a data set, each class in equal shares, of each class the first ones; all rows if there
/// are not more. So a limit of a data set that is in order of its classes still has all of them.
std::vector<std::int64_t> firstRows(std::span<const std::int64_t> classes, std::int64_t count);

/// Examples of the first part of a split: `fraction` of `examples`, rounded, with at least one example on
/// each side. @throws InvalidArgument unless 0 < fraction < 1 and there are two examples.
std::int64_t countOf(double fraction, std::int64_t examples);

/// Divides a data set into one part to train with and one to validate or test with, at random by `seed`. If
/// the labels are classes (int64 [N]), both parts have them in equal shares. Copies the rows.
///
///     auto [train, validation] = split(features, labels, 0.9, /*seed=*/1);
///
/// @param fraction  of the examples for the first part, between 0 and 1.
/// @throws InvalidArgument for another fraction, tensors that do not match, or a first part without an
///         example of some class.
std::pair<LabelledTensors, LabelledTensors> split(const Tensor& features, const Tensor& labels,
                                                  double fraction, std::uint64_t seed);

/// As above, with `count` examples in the first part.
std::pair<LabelledTensors, LabelledTensors> splitAt(const Tensor& features, const Tensor& labels,
                                                    std::int64_t count, std::uint64_t seed);

/// Some examples of another data set, by their indices.
class DatasetSubset : public Dataset {
 public:
  /// @param dataset  must outlive the subset.  @param rows  such as a part of `splitRows`.
  DatasetSubset(const Dataset& dataset, std::vector<std::int64_t> rows)
      : dataset_(dataset), rows_(std::move(rows)) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(rows_.size()); }
  Example get(std::int64_t index) const override {
    return dataset_.get(rows_.at(static_cast<std::size_t>(index)));
  }
  const InputDescription* description() const override { return dataset_.description(); }

 private:
  const Dataset& dataset_;
  std::vector<std::int64_t> rows_;
};

}  // namespace muster
