#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "muster/core/tensor/tensor.h"

namespace muster::detail {

// Predictions and labels are rows of numbers: [N, F], or [N, T, F] with a row at each time step. Their `rows`
// is the shape without F.

/// "example 3", or "example 1, step 5".
std::string placeName(std::int64_t row, const Shape& rows);

/// Row `i`.
std::span<const float> rowOf(const Tensor& tensor, std::int64_t i);

/// The class of a one-hot label row, or of a single 0 or 1; -1 if it is neither.
std::int64_t oneHotClass(std::span<const float> row);

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
/// @param caller  begins the message.  @param why  ends it, if given, as featuresRemark.
void requireFinitePredictions(std::span<const float> row, std::int64_t i, const Shape& rows,
                              std::string_view caller = "evaluation",
                              const std::function<std::string()>& why = {});
/// @throws InvalidArgument likewise.
void requireFiniteLabels(std::span<const float> row, std::int64_t i, const Shape& rows);

/// What an example's features may have to do with a prediction that is not finite: "; its features hold nan
/// in column 1, counted from 0", or "; the largest of its features is 1e+30, in column 1, counted from 0".
/// "" if they are no float32 in the host's memory.
/// @param features  [N, ...]  @param names  [feature] to use instead of their numbers, as "in size".
std::string featuresRemark(const Tensor& features, std::int64_t example,
                           std::span<const std::string> names = {});

}  // namespace muster::detail
