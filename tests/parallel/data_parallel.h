#pragma once

#include <cstring>

#include "muster/parallel/data_parallel/data_parallel.h"
#include "tests/support/arrays.h"
#include "tests/support/sequence_model.h"
#include "tests/support/thrown.h"

namespace muster::test {

/// Not pinned, because other tests run concurrently.
inline DataParallelOptions unpinned(std::function<void(int)> init = {}) {
  return {.pinThreads = false, .init = std::move(init)};
}

inline std::vector<Device> cpus(int count) {
  return std::vector<Device>(static_cast<std::size_t>(count));
}

template <typename T>
Tensor randomTensor(const Shape& shape, std::uint64_t seed) {
  const RandomStream random(seed, "tensor");
  Tensor tensor = Tensor::empty(shape, kDTypeOf<T>);
  for (std::int64_t i = 0; i < tensor.elements(); ++i)
    tensor.data<T>()[i] = static_cast<T>(random.normal(static_cast<std::uint64_t>(i)));
  return tensor;
}

/// The largest difference divided by the largest expected value; infinite if shapes differ or all values are
/// zero.
template <typename T>
double distance(const Tensor& tensor, const Tensor& expected) {
  if (tensor.shape() != expected.shape()) return INFINITY;
  double difference = 0, largest = 0;
  for (std::int64_t i = 0; i < expected.elements(); ++i) {
    const double x = tensor.data<T>()[i], y = expected.data<T>()[i];
    if (!std::isfinite(x)) return INFINITY;
    difference = std::max(difference, std::abs(x - y));
    largest = std::max(largest, std::abs(y));
  }
  return largest > 0 ? difference / largest : INFINITY;
}

inline Tensor& gradients(Model& model) {
  return model.block(BlockKind::Gradients).values;
}
inline Tensor& parameters(Model& model) {
  return model.block(BlockKind::Parameters).values;
}

}  // namespace muster::test
