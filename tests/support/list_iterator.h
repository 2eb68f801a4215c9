#pragma once

#include "muster/core/data/data_set_iterator.h"
#include "tests/support/standard.h"

namespace muster::test {

/// Gives the batches of a list, and remembers the epochs it was reset to.
class ListIterator final : public DataSetIterator {
 public:
  explicit ListIterator(std::vector<Batch> batches) : batches_(std::move(batches)) {}

  void reset(std::int64_t epoch) override {
    epochs.push_back(epoch);
    next_ = 0;
  }
  bool next(Batch& batch) override {
    if (next_ == batches_.size()) return false;
    const BatchStamp stamp = batch.stamp;
    batch = batches_[next_++];
    batch.stamp = stamp;
    return true;
  }

  std::vector<std::int64_t> epochs;

 private:
  std::vector<Batch> batches_;
  std::size_t next_ = 0;
};

}  // namespace muster::test
