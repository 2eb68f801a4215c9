#pragma once

#include <cstdint>

#include "muster/core/base/random.h"
#include "muster/core/data/batch.h"

namespace muster::test {

/// Features standard normal, labels class indices; both from `seed`.
inline Batch classBatch(const Shape& example, std::int64_t examples, std::int64_t classes,
                        std::uint64_t seed) {
  Batch batch;
  Tensor& features = Batch::ensure(batch.features, "features", example.prepend(examples));
  Tensor& labels = Batch::ensure(batch.labels, "labels", {examples}, DType::Int64);
  const RandomStream x(seed, "features"), y(seed, "labels");
  for (std::int64_t i = 0; i < features.elements(); ++i)
    features.data<float>()[i] = static_cast<float>(x.normal(static_cast<std::uint64_t>(i)));
  for (std::int64_t i = 0; i < examples; ++i)
    labels.data<std::int64_t>()[i] = static_cast<std::int64_t>(
        y.below(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(classes)));
  return batch;
}

/// As above with float targets in [0, 1).
inline Batch targetBatch(const Shape& example, std::int64_t examples, std::int64_t targets,
                         std::uint64_t seed) {
  Batch batch = classBatch(example, examples, 1, seed);
  batch.labels.clear();
  Tensor& labels = Batch::ensure(batch.labels, "labels", {examples, targets});
  const RandomStream y(seed, "targets");
  for (std::int64_t i = 0; i < labels.elements(); ++i)
    labels.data<float>()[i] = static_cast<float>(y.uniform(static_cast<std::uint64_t>(i)));
  return batch;
}

/// Examples [begin, end) of a batch, as another batch of the same epoch; looks at the same memory.
inline Batch partOf(const Batch& whole, std::int64_t begin, std::int64_t end) {
  Batch part = whole;
  for (auto* tensors : {&part.features, &part.labels, &part.masks})
    for (auto& tensor : *tensors) tensor.value = tensor.value.rows(begin, end);
  part.stamp.firstExample += begin;
  return part;
}

}  // namespace muster::test
