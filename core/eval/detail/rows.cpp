#include "muster/core/eval/detail/rows.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/eval/non_finite_prediction.h"

namespace muster::detail {

std::string placeName(std::int64_t row, const Shape& rows) {
  if (rows.rank() == 1) return fmt::format("example {}", row);
  return fmt::format("example {}, step {}", row / rows[1], row % rows[1]);
}

std::span<const float> rowOf(const Tensor& tensor, std::int64_t i) {
  const auto columns = static_cast<std::size_t>(tensor.shape()[-1]);
  return tensor.span<float>().subspan(static_cast<std::size_t>(i) * columns, columns);
}

std::int64_t oneHotClass(std::span<const float> row) {
  if (row.size() == 1) return row[0] == 0 ? 0 : row[0] == 1 ? 1 : -1;
  const auto ones = std::ranges::count(row, 1.0f), zeros = std::ranges::count(row, 0.0f);
  if (ones != 1 || ones + zeros != static_cast<std::int64_t>(row.size())) return -1;
  return std::ranges::find(row, 1.0f) - row.begin();
}

void requireMask(const Tensor& mask, const Shape& rows) {
  require(!mask.defined() || (mask.dtype() == DType::Float32 && mask.shape() == rows),
          "evaluation: expected a float32 mask {}, got {}", rows.toString(), mask.toString());
}

Shape requireRows(const Tensor& predictions, const Tensor& labels, const Tensor& mask, std::int64_t columns) {
  const Shape& shape = predictions.shape();
  require(predictions.defined() && predictions.dtype() == DType::Float32 &&
              (shape.rank() == 2 || shape.rank() == 3) && shape[-1] == columns,
          "evaluation: expected float32 predictions [N, {}] or [N, T, {}], got {}", columns, columns,
          predictions.toString());
  require(labels.defined() && labels.dtype() == DType::Float32 && labels.shape() == shape,
          "evaluation: expected float32 labels {}, as the predictions, got {}", shape.toString(),
          labels.toString());
  requireMask(mask, shape.dropLast());
  return shape.dropLast();
}

namespace {

template <typename Refusal>
void requireFinite(std::span<const float> row, std::string_view what, std::int64_t i, const Shape& rows,
                   std::string_view caller = "evaluation", const std::function<std::string()>& why = {}) {
  for (const float value : row)
    if (!std::isfinite(value))
      throw Refusal(fmt::format("{}: {} {} is {}{}", caller, what, placeName(i, rows),
                                std::isnan(value) ? "NaN" : "infinite", why ? why() : ""));
}

}  // namespace

void requireFinitePredictions(std::span<const float> row, std::int64_t i, const Shape& rows,
                              std::string_view caller, const std::function<std::string()>& why) {
  requireFinite<NonFinitePrediction>(row, "a prediction for", i, rows, caller, why);
}

void requireFiniteLabels(std::span<const float> row, std::int64_t i, const Shape& rows) {
  requireFinite<InvalidArgument>(row, "a label of", i, rows);
}

namespace {

/// Where a feature is, counted from 0: "column 3", or "element [0, 2, 5]" of a picture or sequence.
std::string featureName(std::int64_t place, const Shape& example) {
  if (example.rank() == 1) return fmt::format("column {}, counted from 0", place);
  std::vector<std::int64_t> at;
  for (int d = example.rank() - 1; d >= 0; place /= example[d--]) at.insert(at.begin(), place % example[d]);
  return fmt::format("element [{}], counted from 0", fmt::join(at, ", "));
}

}  // namespace

std::string featuresRemark(const Tensor& features, std::int64_t example, std::span<const std::string> names) {
  if (features.dtype() != DType::Float32 || !features.device().isCpu() || features.shape().rank() < 2)
    return {};
  const Tensor one = features.rows(example, example + 1);
  const auto values = one.span<float>();
  if (values.empty()) return {};
  const auto magnitude = [](float x) { return std::isnan(x) ? INFINITY : std::abs(x); };
  const auto most = std::ranges::max_element(values, {}, magnitude);
  const auto place = most - values.begin();
  const auto where = names.size() == values.size() ? names[static_cast<std::size_t>(place)]
                                                   : featureName(place, features.shape().dropFirst());
  return std::isfinite(*most) ? fmt::format("; the largest of its features is {}, in {}", *most, where)
                              : fmt::format("; its features hold {} in {}",
                                            std::isnan(*most) ? std::abs(*most) : *most, where);
}

}  // namespace muster::detail
