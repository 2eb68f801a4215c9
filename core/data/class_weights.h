#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "muster/core/data/data_set_iterator.h"

namespace muster {

/// Gives another iterator's batches with a weight for each example by its class, as a label mask: the loss of
/// a batch is sum_i w(i) loss_i / sum_i w(i), and a merge weights the workers by these sums. An existing
/// label mask is multiplied by the weights; with a label at each time step, so is the mask "features". Where
/// that is 0, the label may be of no class, such as -1.
///
/// Labels are int64 classes [N] or [N, T], or float32 [N, C] or [N, T, C] over C classes, whose weight is
/// sum_c label_c w_c. Pass it to `fit` only: an evaluation gives all examples the same weight.
class ClassWeights final : public DataSetIterator {
 public:
  /// @param data     must outlive it.
  /// @param weights  [class]; finite, at least 0, and one above 0.
  /// @param output   of a network with several outputs, the one to weight; empty: the first labels.
  /// @throws InvalidArgument for other weights.
  ClassWeights(DataSetIterator& data, std::vector<float> weights, std::string output = {});

  void reset(std::int64_t epoch) override { data_.reset(epoch); }
  /// @throws InvalidArgument for a class without a weight, or labels that are no classes.
  bool next(Batch& batch) override;
  std::int64_t skip(std::int64_t batches) override { return data_.skip(batches); }
  bool readsToSkip() const override { return data_.readsToSkip(); }
  const DataSetIterator* inner() const override { return &data_; }
  std::optional<std::int64_t> examples() const override { return data_.examples(); }
  std::optional<std::int64_t> batchSize() const override { return data_.batchSize(); }

 private:
  /// Writes the weights of labels to a mask of their shape. @param given  to multiply by, or null for 1s.
  void weigh(const Tensor& labels, const Tensor* given, Tensor& mask) const;
  float weightOf(const Tensor& labels, std::size_t place) const;

  DataSetIterator& data_;
  std::vector<float> weights_;
  std::string output_;
};

}  // namespace muster
