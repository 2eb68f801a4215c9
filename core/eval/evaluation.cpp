#include "muster/core/eval/evaluation.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <string>

#include "muster/core/base/error.h"
#include "muster/core/eval/detail/rows.h"
#include "muster/core/eval/non_finite_prediction.h"

namespace muster {
namespace {

using detail::oneHotClass;
using detail::placeName;
using detail::rowOf;

constexpr int kLossBits = 40;  // fraction bits of a fixed-point loss

double quotient(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

/// An example's predicted class, and the rank of its true class.
struct Place {
  std::int64_t predicted;
  std::int64_t rank;  // number of classes ranked before the true one
};

Place placeOf(std::span<const float> row, std::int64_t actual) {
  if (row.size() == 1) {
    const std::int64_t predicted = row[0] > 0.5f ? 1 : 0;
    return {predicted, predicted == actual ? 0 : 1};
  }
  const float own = row[static_cast<std::size_t>(actual)];
  Place place{std::ranges::max_element(row) - row.begin(), 0};
  for (std::size_t c = 0; c < row.size(); ++c)
    if (row[c] > own || (row[c] == own && static_cast<std::int64_t>(c) < actual)) ++place.rank;
  return place;
}

/// The predicted probability of the example's true class.
double probabilityOf(std::span<const float> row, std::int64_t actual) {
  if (row.size() > 1) return row[static_cast<std::size_t>(actual)];
  return actual == 1 ? row[0] : 1 - double{row[0]};
}

/// @param rows  the predictions' shape without the classes: [N] or [N, T].
void requireShapes(const Tensor& predictions, const Shape& rows, const Tensor& labels, const Tensor& mask,
                   std::int64_t classes) {
  const auto withLast = [&](std::int64_t last) {
    return rows.rank() == 1 ? Shape{rows[0], last} : Shape{rows[0], rows[1], last};
  };
  const bool indices = labels.dtype() == DType::Int64 && labels.shape() == rows;
  const bool oneHot = labels.dtype() == DType::Float32 &&
                      (labels.shape() == predictions.shape() || labels.shape() == withLast(classes));
  require(labels.defined() && (indices || oneHot),
          "evaluation: expected int64 labels {} or one-hot float32 labels {}, got {}", rows.toString(),
          withLast(classes).toString(), labels.toString());
  detail::requireMask(mask, rows);
}

/// @return the shape of the rows.
Shape requirePredictions(const Tensor& predictions, std::int64_t classes) {
  const Shape& shape = predictions.shape();
  require(predictions.defined() && predictions.dtype() == DType::Float32 &&
              (shape.rank() == 2 || shape.rank() == 3) &&
              (shape[-1] == classes || (classes == 2 && shape[-1] == 1)),
          "evaluation: expected float32 predictions [N, {}] or [N, T, {}], got {}", classes, classes,
          predictions.toString());
  return shape.dropLast();
}

/// @param rows  the shape that `i` indexes.
std::int64_t labelOf(const Tensor& labels, std::int64_t i, const Shape& rows, std::int64_t classes) {
  const bool indices = labels.dtype() == DType::Int64;
  const std::int64_t label = indices ? labels.data<std::int64_t>()[i] : oneHotClass(rowOf(labels, i));
  if (label >= 0 && label < classes) return label;
  const auto where = placeName(i, rows);
  if (indices)
    throw InvalidArgument(
        fmt::format("evaluation: {} has label {}, but there are {} classes", where, label, classes));
  throw InvalidArgument(fmt::format("evaluation: the label of {} is not one-hot", where));
}

/// The macro mean of a class's score.
template <typename Score>
double meanOver(const Evaluation& e, const Score& score) {
  double sum = 0;
  std::int64_t classes = 0;
  for (std::int64_t c = 0; c < e.classes(); ++c) {
    bool occurs = false;  // in the data or in the predictions
    for (std::int64_t other = 0; other < e.classes() && !occurs; ++other)
      occurs = e.count(c, other) > 0 || e.count(other, c) > 0;
    if (!occurs) continue;
    sum += score(e, c);
    ++classes;
  }
  return classes == 0 ? 0 : sum / static_cast<double>(classes);
}

}  // namespace

Evaluation::Evaluation(std::int64_t classes) : classes_(classes) {
  require(classes >= 2, "evaluation: expected at least two classes, got {}", classes);
  confusion_.resize(static_cast<std::size_t>(classes * classes));
  ranks_.resize(static_cast<std::size_t>(classes));
}

void Evaluation::add(const Tensor& predictions, const Tensor& labels, const Tensor& mask) {
  const Shape rows = requirePredictions(predictions, classes_);
  requireShapes(predictions, rows, labels, mask, classes_);
  Evaluation batch(classes_);  // counted separately: a bad example leaves this object unchanged
  for (std::int64_t i = 0; i < rows.elements(); ++i) {
    if (detail::isMasked(mask, i)) continue;
    const auto row = rowOf(predictions, i);
    if (std::ranges::any_of(row, [](float p) { return std::isnan(p); }))
      throw NonFinitePrediction(fmt::format("evaluation: a prediction for {} is NaN", placeName(i, rows)));
    const std::int64_t actual = labelOf(labels, i, rows, classes_);
    const Place place = placeOf(row, actual);
    ++batch.confusion_[static_cast<std::size_t>(actual * classes_ + place.predicted)];
    ++batch.ranks_[static_cast<std::size_t>(place.rank)];
    ++batch.examples_;
    batch.losses_.addExample(probabilityOf(row, actual));
  }
  merge(batch);
}

void Evaluation::merge(const Evaluation& other) {
  require(classes_ == other.classes_, "evaluation: one of {} classes cannot be merged with one of {}",
          classes_, other.classes_);
  std::ranges::transform(confusion_, other.confusion_, confusion_.begin(), std::plus{});
  std::ranges::transform(ranks_, other.ranks_, ranks_.begin(), std::plus{});
  examples_ += other.examples_;
  losses_.add(other.losses_);
}

void Evaluation::Losses::addExample(double probability) {
  const double p = std::max<double>(probability, std::numeric_limits<float>::min());
  const bool valid = probability >= 0 && probability <= 1;
  add({.whole = 0,
       .rest = valid ? std::llround(std::ldexp(-std::log(p), kLossBits)) : 0,
       .probabilities = valid});
}

void Evaluation::Losses::add(const Losses& other) {
  rest += other.rest;
  whole += other.whole + (rest >> kLossBits);
  rest &= (std::int64_t{1} << kLossBits) - 1;
  probabilities = probabilities && other.probabilities;
}

double Evaluation::Losses::sum() const {
  return static_cast<double>(whole) + std::ldexp(static_cast<double>(rest), -kLossBits);
}

double Evaluation::loss() const {
  if (!losses_.probabilities) return std::numeric_limits<double>::quiet_NaN();
  return examples_ == 0 ? 0 : losses_.sum() / static_cast<double>(examples_);
}

std::vector<std::int64_t> Evaluation::toNumbers() const {
  std::vector<std::int64_t> numbers = {classes_, examples_, losses_.whole, losses_.rest,
                                       losses_.probabilities ? 1 : 0};
  numbers.insert(numbers.end(), confusion_.begin(), confusion_.end());
  numbers.insert(numbers.end(), ranks_.begin(), ranks_.end());
  return numbers;
}

Evaluation Evaluation::fromNumbers(std::span<const std::int64_t> numbers) {
  constexpr std::size_t kHead = 5;
  const std::int64_t classes = numbers.size() < kHead ? 0 : numbers[0];
  const auto n = static_cast<std::size_t>(classes);
  const bool fits = classes >= 2 && classes < (std::int64_t{1} << 30) && numbers.size() == kHead + n * n + n;
  require(fits && std::ranges::none_of(numbers, [](std::int64_t number) { return number < 0; }),
          "evaluation: these {} numbers are none", numbers.size());
  Evaluation all(classes);
  all.examples_ = numbers[1];
  all.losses_ = {.whole = numbers[2], .rest = numbers[3], .probabilities = numbers[4] != 0};
  const auto counts = numbers.subspan(kHead);
  std::ranges::copy(counts.first(n * n), all.confusion_.begin());
  std::ranges::copy(counts.last(n), all.ranks_.begin());
  return all;
}

std::int64_t Evaluation::count(std::int64_t actual, std::int64_t predicted) const {
  requireClass(actual);
  requireClass(predicted);
  return confusion_[static_cast<std::size_t>(actual * classes_ + predicted)];
}

double Evaluation::topKAccuracy(std::int64_t k) const {
  require(k >= 1, "evaluation: top-k accuracy needs k >= 1, got {}", k);
  const auto end = ranks_.begin() + std::min(k, classes_);
  return quotient(std::accumulate(ranks_.begin(), end, std::int64_t{0}), examples_);
}

double Evaluation::precision(std::int64_t ofClass) const {
  requireClass(ofClass);
  std::int64_t predicted = 0;
  for (std::int64_t actual = 0; actual < classes_; ++actual) predicted += count(actual, ofClass);
  return quotient(count(ofClass, ofClass), predicted);
}

double Evaluation::recall(std::int64_t ofClass) const {
  requireClass(ofClass);
  std::int64_t actual = 0;
  for (std::int64_t predicted = 0; predicted < classes_; ++predicted) actual += count(ofClass, predicted);
  return quotient(count(ofClass, ofClass), actual);
}

double Evaluation::f1(std::int64_t ofClass) const {
  const double p = precision(ofClass), r = recall(ofClass);
  return p + r == 0 ? 0 : 2 * p * r / (p + r);
}

double Evaluation::precision() const {
  return meanOver(*this, [](const Evaluation& e, std::int64_t c) { return e.precision(c); });
}

double Evaluation::recall() const {
  return meanOver(*this, [](const Evaluation& e, std::int64_t c) { return e.recall(c); });
}

double Evaluation::f1() const {
  return meanOver(*this, [](const Evaluation& e, std::int64_t c) { return e.f1(c); });
}

void Evaluation::requireClass(std::int64_t index) const {
  require(index >= 0 && index < classes_, "evaluation: there is no class {}, only 0 to {}", index,
          classes_ - 1);
}

}  // namespace muster
