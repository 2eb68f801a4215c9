#include "muster/core/eval/regression_evaluation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/core/base/printable_text.h"
#include "muster/core/eval/detail/label_width.h"
#include "muster/core/eval/detail/rows.h"
#include "muster/core/eval/detail/score_text.h"

namespace muster {
namespace {

constexpr std::int64_t kMostColumns = 30;  // of a table

}  // namespace

RegressionEvaluation::RegressionEvaluation(std::int64_t columns) {
  require(columns >= 1, "evaluation: a regression has at least one column, got {}", columns);
  sums_.resize(static_cast<std::size_t>(columns));
}

void RegressionEvaluation::add(const Tensor& predictions, const Tensor& labels, const Tensor& mask) {
  const Shape rows = detail::requireRows(predictions, labels, mask, columns());
  for (std::int64_t i = 0; i < rows.elements(); ++i) {
    if (detail::isMasked(mask, i)) continue;
    detail::requireFinitePredictions(detail::rowOf(predictions, i), i, rows);
    detail::requireFiniteLabels(detail::rowOf(labels, i), i, rows);
  }
  for (std::int64_t i = 0; i < rows.elements(); ++i) {
    if (detail::isMasked(mask, i)) continue;
    const auto predicted = detail::rowOf(predictions, i), actual = detail::rowOf(labels, i);
    for (std::size_t c = 0; c < sums_.size(); ++c) {
      const double p = predicted[c], y = actual[c];  // their products are exact
      Sums& sums = sums_[c];
      sums[Labels].add(y);
      sums[Predictions].add(p);
      sums[SquaredLabels].add(y * y);
      sums[SquaredPredictions].add(p * p);
      sums[Products].add(p * y);
      sums[AbsoluteErrors].add(std::abs(p - y));
      sums[SquaredErrors].add((p - y) * (p - y));
    }
    ++examples_;
  }
}

void RegressionEvaluation::merge(const RegressionEvaluation& other) {
  require(columns() == other.columns(), "evaluation: one of {} columns cannot be merged with one of {}",
          columns(), other.columns());
  for (std::size_t c = 0; c < sums_.size(); ++c)
    for (std::size_t s = 0; s < kSums; ++s) sums_[c][s].add(other.sums_[c][s]);
  examples_ += other.examples_;
}

const RegressionEvaluation::Sums& RegressionEvaluation::sumsOf(std::int64_t column) const {
  require(column >= 0 && column < columns(), "evaluation: there is no column {}, only 0 to {}", column,
          columns() - 1);
  return sums_[static_cast<std::size_t>(column)];
}

double RegressionEvaluation::mean(std::int64_t column, Sum sum) const {
  const double total = sumsOf(column)[sum].value();
  return examples_ == 0 ? 0 : total / static_cast<double>(examples_);
}

double RegressionEvaluation::scatter(const Sums& sums, Sum products, Sum a, Sum b) const {
  const WideNumber count{static_cast<double>(examples_)};
  const double difference = (count * sums[products].wide() - sums[a].wide() * sums[b].wide()).high;
  // What is left of equal numbers is the rounding of the wide numbers.
  return products != Products && difference < 0 ? 0 : difference;
}

void RegressionEvaluation::setTargets(std::vector<TargetColumn> targets) {
  require(std::ssize(targets) == columns(), "evaluation: {} are described, and {} evaluated",
          plural(targets.size(), "column"), columns());
  targets_ = std::move(targets);
}

double RegressionEvaluation::scaleOf(std::int64_t column) const {
  return targets_.empty() ? 1 : targets_[static_cast<std::size_t>(column)].scale;
}

std::string RegressionEvaluation::nameOf(std::int64_t column) const {
  return targets_.empty() ? fmt::format("{}", column)
                          : printableText(targets_[static_cast<std::size_t>(column)].name);
}

double RegressionEvaluation::meanSquaredError(std::int64_t column) const {
  const double scaled = mean(column, SquaredErrors);
  return scaleOf(column) * scaleOf(column) * scaled;
}

double RegressionEvaluation::meanAbsoluteError(std::int64_t column) const {
  const double scaled = mean(column, AbsoluteErrors);
  return scaleOf(column) * scaled;
}

double RegressionEvaluation::rootMeanSquaredError(std::int64_t column) const {
  return std::sqrt(meanSquaredError(column));
}

double RegressionEvaluation::r2(std::int64_t column) const {
  const Sums& sums = sumsOf(column);
  if (examples_ == 0) return 0;
  const double errors = static_cast<double>(examples_) * sums[SquaredErrors].value();
  const double deviations = scatter(sums, SquaredLabels, Labels, Labels);
  if (deviations == 0) return std::numeric_limits<double>::quiet_NaN();
  return 1 - errors / deviations;
}

double RegressionEvaluation::correlation(std::int64_t column) const {
  const Sums& sums = sumsOf(column);
  const double labels = scatter(sums, SquaredLabels, Labels, Labels);
  const double predictions = scatter(sums, SquaredPredictions, Predictions, Predictions);
  if (examples_ > 0 && labels == 0) return std::numeric_limits<double>::quiet_NaN();
  if (labels == 0 || predictions == 0) return 0;
  return scatter(sums, Products, Labels, Predictions) / (std::sqrt(labels) * std::sqrt(predictions));
}

double RegressionEvaluation::meanOver(double (RegressionEvaluation::*score)(std::int64_t) const) const {
  double sum = 0;
  std::int64_t defined = 0;
  for (std::int64_t c = 0; c < columns(); ++c)
    if (const double one = (this->*score)(c); !std::isnan(one)) {
      sum += one;
      ++defined;
    }
  return defined == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(defined);
}

double RegressionEvaluation::meanSquaredError() const {
  return meanOver(&RegressionEvaluation::meanSquaredError);
}

double RegressionEvaluation::meanAbsoluteError() const {
  return meanOver(&RegressionEvaluation::meanAbsoluteError);
}

double RegressionEvaluation::rootMeanSquaredError() const {
  return meanOver(&RegressionEvaluation::rootMeanSquaredError);
}

double RegressionEvaluation::r2() const {
  return meanOver(&RegressionEvaluation::r2);
}

double RegressionEvaluation::correlation() const {
  return meanOver(&RegressionEvaluation::correlation);
}

std::string RegressionEvaluation::summary() const {
  const std::int64_t printed = std::min(columns(), kMostColumns);
  std::vector<std::string> names;
  for (std::int64_t c = 0; c < printed; ++c) names.push_back(nameOf(c));
  const int width = detail::labelWidth(names);
  const auto row = [&](std::string_view name, double mse, double rmse, double mae, double r2, double r) {
    return fmt::format("{:>{}} {:>12.6g} {:>12.6g} {:>12.6g} {:>10} {:>12}\n", name, width, mse, rmse, mae,
                       detail::scoreText(r2), detail::scoreText(r));
  };
  std::string text = fmt::format("{}, {}: R2 {}, RMSE {:.6g}, MAE {:.6g}{}\n\n", plural(examples_, "example"),
                                 plural(columns(), "column"), detail::scoreText(r2()), rootMeanSquaredError(),
                                 meanAbsoluteError(),
                                 targets_.empty() ? ""
                                 : columns() == 1 ? ", in the column's own units"
                                                  : ", in the columns' own units");
  text += fmt::format("{:>{}} {:>12} {:>12} {:>12} {:>10} {:>12}\n", "column", width, "MSE", "RMSE", "MAE",
                      "R2", "correlation");
  for (std::int64_t c = 0; c < printed; ++c)
    text += row(names[static_cast<std::size_t>(c)], meanSquaredError(c), rootMeanSquaredError(c),
                meanAbsoluteError(c), r2(c), correlation(c));
  if (columns() > kMostColumns)
    text += fmt::format("{:>{}} not printed: {}\n", "...", width, columns() - kMostColumns);
  if (columns() > 1)
    text += row("mean", meanSquaredError(), rootMeanSquaredError(), meanAbsoluteError(), r2(), correlation());
  return text;
}

std::vector<std::int64_t> RegressionEvaluation::toNumbers() const {
  std::vector<std::int64_t> numbers = {columns(), examples_};
  for (const Sums& sums : sums_)
    for (const ExactSum& sum : sums) {
      const auto digits = sum.toNumbers();
      numbers.insert(numbers.end(), digits.begin(), digits.end());
    }
  return numbers;
}

RegressionEvaluation RegressionEvaluation::fromNumbers(std::span<const std::int64_t> numbers) {
  constexpr std::size_t kHead = 2, kEach = kSums * ExactSum::kDigits;
  const std::int64_t columns = numbers.size() < kHead ? 0 : numbers[0];
  require(columns >= 1 && columns < (std::int64_t{1} << 30) && numbers[1] >= 0 &&
              numbers.size() == kHead + static_cast<std::size_t>(columns) * kEach,
          "evaluation: these {} numbers are none", numbers.size());
  RegressionEvaluation all(columns);
  all.examples_ = numbers[1];
  auto rest = numbers.subspan(kHead);
  for (Sums& sums : all.sums_)
    for (ExactSum& sum : sums) {
      sum = ExactSum::fromNumbers(rest);
      rest = rest.subspan(ExactSum::kDigits);
    }
  return all;
}

}  // namespace muster
