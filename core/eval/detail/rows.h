#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "muster/core/tensor/tensor.h"

namespace muster::detail {

// Predictions and labels are rows of numbers: [N, F], or [N, T, F] with a row at each time step. Their `rows`
// is the shape without F.

/// "example 3", or "example 1, step 5".
std::string placeName(std::int64_t row, const Shape& rows);

/// Row `i`.
std::span<const float> rowOf(const Tensor& tensor, std::int64_t i);

/// Whether the mask leaves out a row; an undefined one leaves out none.
inline bool isMasked(const Tensor& mask, std::int64_t row) {
  return mask.defined() && mask.data<float>()[row] == 0;
}

/// @throws InvalidArgument unless the mask is undefined, or float32 and of this shape.
void requireMask(const Tensor& mask, const Shape& rows);

/// @return the predictions' rows.
/// @throws InvalidArgument unless they are float32 rows of `columns`, and the labels and mask fit them.
Shape requireRows(const Tensor& predictions, const Tensor& labels, const Tensor& mask, std::int64_t columns);

/// @throws NonFinitePrediction if a number is not finite, naming the row.
void requireFinitePredictions(std::span<const float> row, std::int64_t i, const Shape& rows);
/// @throws InvalidArgument likewise.
void requireFiniteLabels(std::span<const float> row, std::int64_t i, const Shape& rows);

}  // namespace muster::detail
