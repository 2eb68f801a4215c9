#pragma once

#include "muster/core/base/random.h"
#include "muster/core/data/in_memory.h"

namespace muster {

/// Images of MNIST's size and digits without meaning, the same each time.
inline InMemoryDataSetIterator noise(std::int64_t batches, std::int64_t batch) {
  const RandomStream random(5, "noise");
  Tensor features = Tensor::empty({batches * batch, 1, 28, 28});
  Tensor labels = Tensor::empty({batches * batch}, DType::Int64);
  for (std::int64_t i = 0; i < features.elements(); ++i)
    features.data<float>()[i] = static_cast<float>(random.uniform(i));
  for (std::int64_t i = 0; i < labels.elements(); ++i) labels.data<std::int64_t>()[i] = i % 10;
  return InMemoryDataSetIterator(features, labels, batch);
}

}  // namespace muster
