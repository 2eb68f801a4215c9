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

/// `count` such batches, from the seeds 0, 1, ...
inline std::vector<Batch> classBatches(const Shape& example, std::int64_t examples, std::int64_t classes,
                                       std::uint64_t count) {
  std::vector<Batch> batches;
  for (std::uint64_t seed = 0; seed < count; ++seed)
    batches.push_back(classBatch(example, examples, classes, seed));
  return batches;
}

/// As `classBatch` with float targets in [0, 1).
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

/// Sequences [T, F] with a class at each step. If `masked`: the first example is all padding, the second has
/// none, and the others have a random number of steps, at least the first one.
inline Batch sequenceBatch(const Shape& example, std::int64_t examples, std::int64_t classes,
                           std::uint64_t seed, bool masked) {
  Batch batch = classBatch(example, examples, 1, seed);
  const std::int64_t steps = example[0];
  batch.labels.clear();
  Tensor& labels = Batch::ensure(batch.labels, "labels", {examples, steps}, DType::Int64);
  const RandomStream y(seed, "step labels"), lengths(seed, "lengths");
  for (std::int64_t i = 0; i < labels.elements(); ++i)
    labels.data<std::int64_t>()[i] = static_cast<std::int64_t>(
        y.below(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(classes)));
  if (!masked) return batch;
  Tensor& mask = Batch::ensure(batch.masks, "features", {examples, steps});
  for (std::int64_t n = 0; n < examples; ++n) {
    const auto drawn = lengths.below(static_cast<std::uint64_t>(n), static_cast<std::uint64_t>(steps));
    const std::int64_t length = n == 0 ? 0 : n == 1 ? steps : 1 + static_cast<std::int64_t>(drawn);
    for (std::int64_t t = 0; t < steps; ++t) mask.data<float>()[n * steps + t] = t < length ? 1.0f : 0.0f;
  }
  return batch;
}

/// Examples [begin, end) of a batch, as another batch of the same epoch that views the same memory.
inline Batch partOf(const Batch& whole, std::int64_t begin, std::int64_t end) {
  Batch part = whole;
  for (auto* tensors : {&part.features, &part.labels, &part.masks})
    for (auto& tensor : *tensors) tensor.value = tensor.value.rows(begin, end);
  part.stamp.firstExample += begin;
  return part;
}

}  // namespace muster::test
