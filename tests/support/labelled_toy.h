#pragma once

#include "tests/support/toy_data.h"

namespace muster::test {

/// With labels: example n of a batch has class n mod `classes`.
class LabelledToy final : public ToyIterator {
 public:
  LabelledToy(std::vector<ToyBatch> batches, std::int64_t width, std::int64_t classes)
      : ToyIterator(std::move(batches), width), classes_(classes) {}
  bool next(Batch& batch) override {
    if (!ToyIterator::next(batch)) return false;
    Tensor& labels = Batch::ensureOnly(batch.labels, "y", {batch.examples()}, DType::Int64);
    for (std::int64_t n = 0; n < batch.examples(); ++n) labels.data<std::int64_t>()[n] = n % classes_;
    return true;
  }

 private:
  const std::int64_t classes_;
};

}  // namespace muster::test
