#pragma once

#include <algorithm>
#include <vector>

#include "muster/core/data/batch.h"

namespace muster::test {

/// Of int64.
inline Tensor integers(const std::vector<std::int64_t>& values, const Shape& shape) {
  Tensor tensor = Tensor::empty(shape, DType::Int64);
  std::ranges::copy(values, tensor.data<std::int64_t>());
  return tensor;
}
inline Tensor integers(const std::vector<std::int64_t>& values) {
  return integers(values, {std::ssize(values)});
}

/// A batch with these features, and labels if there are any.
inline Batch batchOf(const Tensor& features, const Tensor& labels = {}) {
  Batch batch;
  batch.features.push_back({"features", features});
  if (labels.defined()) batch.labels.push_back({"labels", labels});
  return batch;
}

}  // namespace muster::test
