#pragma once

#include <vector>

#include "muster/core/data/data_set_iterator.h"

namespace muster {

/// Joins each `count` batches of another iterator into one; the last of an epoch may join fewer. With 1
/// batches pass unchanged. See TrainingOptions::accumulate.
class JoiningIterator final : public DataSetIterator {
 public:
  /// @param data  must outlive it.  @throws InvalidArgument for count < 1.
  JoiningIterator(DataSetIterator& data, std::int64_t count);

  void reset(std::int64_t epoch) override;
  /// @throws InvalidArgument if batches that are joined have tensors of other names, types or shapes of an
  ///         example, or rows of other data sets.
  bool next(Batch& batch) override;
  std::int64_t skip(std::int64_t batches) override;
  bool readsToSkip() const override { return data_.readsToSkip(); }
  const NumberedBatches* numbered() const override { return count_ == 1 ? data_.numbered() : nullptr; }
  const DataSetIterator* inner() const override { return &data_; }
  std::optional<std::int64_t> examples() const override { return data_.examples(); }
  std::optional<std::int64_t> batchSize() const override;

 private:
  DataSetIterator& data_;
  std::int64_t count_;
  std::vector<Batch> parts_;  // recycled
  bool ended_ = false;
};

}  // namespace muster
