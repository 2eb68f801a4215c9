#pragma once

#include "muster/core/data/data_set_iterator.h"

namespace muster::test {

/// Batches of one to three examples with 6 features and 4 classes, the same in every epoch.
class SmallExamples : public DataSetIterator {
 public:
  explicit SmallExamples(int batches) : batches_(batches) {}
  void reset(std::int64_t) override { next_ = 0; }
  bool next(Batch& batch) override {
    if (next_ == batches_) return false;
    const std::int64_t n = 1 + next_ % 3;
    batch.features.resize(1);
    batch.labels.resize(1);
    batch.features[0].value = Tensor::empty({n, 6});
    batch.labels[0].value = Tensor::zeros({n, 4});
    for (std::int64_t i = 0; i < 6 * n; ++i)
      batch.features[0].value.data<float>()[i] = static_cast<float>((37 * next_ + 11 * i) % 64) / 32 - 1;
    for (std::int64_t i = 0; i < n; ++i) batch.labels[0].value.data<float>()[4 * i + (next_ + i) % 4] = 1;
    ++next_;
    return true;
  }

 private:
  const int batches_;
  std::int64_t next_ = 0;
};

}  // namespace muster::test
