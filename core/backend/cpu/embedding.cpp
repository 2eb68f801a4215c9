#include "muster/core/ops/embedding.h"

#include <algorithm>

#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/backend/cpu/simd.h"
#include "muster/core/base/error.h"

namespace muster::cpu {
namespace {

constexpr std::int64_t kLeastElements = 4096;  // minimum per thread

[[gnu::always_inline]] inline void addRow(const float* from, float* to, std::int64_t features) {
  for (std::int64_t f = 0; f < features; ++f) to[f] += from[f];
}

/// The minimum number of rows of `features` elements per thread.
std::int64_t grainOf(std::int64_t features) {
  return std::max<std::int64_t>(1, kLeastElements / std::max<std::int64_t>(1, features));
}

[[noreturn]] void throwOutOfRange(const Tensor& indices, std::int64_t place, std::int64_t vocabulary) {
  const std::int64_t examples =
      indices.shape().rank() > 0 ? std::max<std::int64_t>(1, indices.shape()[0]) : 1;
  const std::int64_t positions = indices.elements() / examples;
  throw InvalidArgument(
      fmt::format("embedding: the index of example {} at position {} is {}, but the vocabulary is 0 to {}",
                  place / positions, place % positions, indices.data<std::int64_t>()[place], vocabulary - 1));
}

}  // namespace

void embeddingForward(const Tensor& indices, const Tensor& table, const Tensor& mask, Tensor& y,
                      Context& context) {
  const std::int64_t vocabulary = table.shape()[0], features = table.shape()[1];
  const std::int64_t* index = indices.data<std::int64_t>();
  const float* real = mask.defined() ? mask.data<float>() : nullptr;
  // Check indices here, because threads must not throw.
  for (std::int64_t i = 0; i < indices.elements(); ++i)
    if ((!real || real[i] != 0) && (index[i] < 0 || index[i] >= vocabulary))
      throwOutOfRange(indices, i, vocabulary);
  const float* from = table.data<float>();
  float* to = y.data<float>();
  parallelFor(context, indices.elements(), grainOf(features), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      if (!real || real[i] != 0)
        std::copy_n(from + index[i] * features, features, to + i * features);
      else
        std::fill_n(to + i * features, features, 0.0f);
    }
  });
}

void embeddingBackward(const Tensor& indices, const Tensor& gradY, const Tensor& mask, Tensor& gradTable,
                       Context& context) {
  const std::int64_t vocabulary = gradTable.shape()[0], features = gradTable.shape()[1];
  const std::int64_t count = indices.elements();
  const std::int64_t* index = indices.data<std::int64_t>();
  const float* real = mask.defined() ? mask.data<float>() : nullptr;
  const float* from = gradY.data<float>();
  float* to = gradTable.data<float>();
  // Each thread computes some rows of the table and visits all indices, so each row's sum has a fixed order.
  parallelFor(context, vocabulary, grainOf(features), [=](std::int64_t begin, std::int64_t end) {
    std::fill(to + begin * features, to + end * features, 0.0f);
    for (std::int64_t i = 0; i < count; ++i)
      if (index[i] >= begin && index[i] < end && (!real || real[i] != 0))
        dispatch<addRow>(from + i * features, to + index[i] * features, features);
  });
}

}  // namespace muster::cpu
