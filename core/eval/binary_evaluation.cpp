#include "muster/core/eval/binary_evaluation.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/core/base/printable_text.h"
#include "muster/core/eval/detail/label_width.h"
#include "muster/core/eval/detail/rows.h"

namespace muster {
namespace {

constexpr std::int64_t kMostRows = 30;  // of a table

double quotient(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

bool isPredicted(float prediction) {
  return prediction > 0.5f;
}

std::int64_t predictedOf(const std::vector<float>& predictions) {
  return std::ranges::count_if(predictions, isPredicted);
}

std::vector<float> descending(std::vector<float> values) {
  std::ranges::sort(values, std::greater{});
  return values;
}

/// Calls `at(with, without)` for each threshold, from the largest: the numbers of predictions at or above it.
template <typename At>
void forEachThreshold(const std::vector<float>& with, const std::vector<float>& without, At at) {
  const auto a = descending(with), b = descending(without);
  for (std::size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    const float threshold = i == a.size() ? b[j] : j == b.size() ? a[i] : std::max(a[i], b[j]);
    while (i < a.size() && a[i] == threshold) ++i;
    while (j < b.size() && b[j] == threshold) ++j;
    at(static_cast<std::int64_t>(i), static_cast<std::int64_t>(j));
  }
}

/// One label as int64 class indices becomes a column.
Tensor columnOf(const Tensor& labels) {
  Tensor column = Tensor::empty(labels.shape().rank() == 1 ? Shape{labels.shape()[0], 1}
                                                           : Shape{labels.shape()[0], labels.shape()[1], 1});
  std::ranges::transform(labels.span<std::int64_t>(), column.data<float>(),
                         [](std::int64_t label) { return static_cast<float>(label); });
  return column;
}

}  // namespace

BinaryEvaluation::BinaryEvaluation(std::int64_t labels) {
  require(labels >= 1, "evaluation: expected at least one label, got {}", labels);
  labels_.resize(static_cast<std::size_t>(labels));
}

void BinaryEvaluation::add(const Tensor& predictions, const Tensor& given, const Tensor& mask) {
  const bool indices = labels() == 1 && given.defined() && given.dtype() == DType::Int64 &&
                       given.shape() == predictions.shape().dropLast();
  const Tensor labels = indices ? columnOf(given) : given;
  const Shape rows = detail::requireRows(predictions, labels, mask, this->labels());
  for (std::int64_t i = 0; i < rows.elements(); ++i) {
    if (detail::isMasked(mask, i)) continue;
    detail::requireFinitePredictions(detail::rowOf(predictions, i), i, rows);
    for (const float label : detail::rowOf(labels, i))
      require(label == 0 || label == 1, "evaluation: a label of {} is {}, and expected is 0 or 1",
              detail::placeName(i, rows), label);
  }
  for (std::int64_t i = 0; i < rows.elements(); ++i) {
    if (detail::isMasked(mask, i)) continue;
    const auto predicted = detail::rowOf(predictions, i), actual = detail::rowOf(labels, i);
    bool right = true;
    for (std::size_t l = 0; l < labels_.size(); ++l) {
      (actual[l] == 1 ? labels_[l].with : labels_[l].without).push_back(predicted[l] + 0.0f);  // no -0
      right = right && isPredicted(predicted[l]) == (actual[l] == 1);
    }
    ++examples_;
    allRight_ += right ? 1 : 0;
  }
}

void BinaryEvaluation::merge(const BinaryEvaluation& other) {
  require(labels() == other.labels(), "evaluation: one of {} labels cannot be merged with one of {}",
          labels(), other.labels());
  for (std::size_t l = 0; l < labels_.size(); ++l) {
    const auto append = [](std::vector<float>& to, const std::vector<float>& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(labels_[l].with, other.labels_[l].with);
    append(labels_[l].without, other.labels_[l].without);
  }
  examples_ += other.examples_;
  allRight_ += other.allRight_;
}

const BinaryEvaluation::Label& BinaryEvaluation::labelAt(std::int64_t label) const {
  require(label >= 0 && label < labels(), "evaluation: there is no label {}, only 0 to {}", label,
          labels() - 1);
  return labels_[static_cast<std::size_t>(label)];
}

std::int64_t BinaryEvaluation::positives(std::int64_t label) const {
  return std::ssize(labelAt(label).with);
}

BinaryEvaluation::Counts BinaryEvaluation::countsOf(std::int64_t label) const {
  const auto& [with, without] = labelAt(label);
  const std::int64_t right = predictedOf(with), wrong = predictedOf(without);
  return {right, wrong, std::ssize(without) - wrong, std::ssize(with) - right};
}

double BinaryEvaluation::accuracy(std::int64_t label) const {
  const Counts counts = countsOf(label);
  return quotient(counts.truePositives + counts.trueNegatives, examples_);
}

double BinaryEvaluation::precision(std::int64_t label) const {
  const Counts counts = countsOf(label);
  return quotient(counts.truePositives, counts.truePositives + counts.falsePositives);
}

double BinaryEvaluation::recall(std::int64_t label) const {
  const Counts counts = countsOf(label);
  return quotient(counts.truePositives, counts.truePositives + counts.falseNegatives);
}

double BinaryEvaluation::f1(std::int64_t label) const {
  const Counts counts = countsOf(label);
  return quotient(2 * counts.truePositives,
                  2 * counts.truePositives + counts.falsePositives + counts.falseNegatives);
}

double BinaryEvaluation::auc(std::int64_t label) const {
  const auto& [with, without] = labelAt(label);
  if (with.empty() || without.empty()) return std::numeric_limits<double>::quiet_NaN();
  // Twice the number of pairs in the right order, in whole numbers: examples are fewer than 2^31.
  std::int64_t twice = 0;
  std::int64_t withBefore = 0, withoutBefore = 0;
  forEachThreshold(with, without, [&](std::int64_t i, std::int64_t j) {
    twice += (j - withoutBefore) * (i + withBefore);
    withBefore = i;
    withoutBefore = j;
  });
  const double pairs = static_cast<double>(with.size()) * static_cast<double>(without.size());
  return static_cast<double>(twice) / (2 * pairs);
}

double BinaryEvaluation::averagePrecision(std::int64_t label) const {
  const auto& [with, without] = labelAt(label);
  if (with.empty()) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  std::int64_t before = 0;
  forEachThreshold(with, without, [&](std::int64_t i, std::int64_t j) {
    sum += static_cast<double>(i - before) * quotient(i, i + j);
    before = i;
  });
  return sum / static_cast<double>(with.size());
}

/// Over the labels for which it is a number.
double BinaryEvaluation::meanOver(double (BinaryEvaluation::*score)(std::int64_t) const) const {
  double sum = 0;
  std::int64_t count = 0;
  for (std::int64_t l = 0; l < labels(); ++l)
    if (const double value = (this->*score)(l); !std::isnan(value)) {
      sum += value;
      ++count;
    }
  return count == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(count);
}

double BinaryEvaluation::accuracy() const {
  return meanOver(&BinaryEvaluation::accuracy);
}

double BinaryEvaluation::precision() const {
  return meanOver(&BinaryEvaluation::precision);
}

double BinaryEvaluation::recall() const {
  return meanOver(&BinaryEvaluation::recall);
}

double BinaryEvaluation::f1() const {
  return meanOver(&BinaryEvaluation::f1);
}

double BinaryEvaluation::auc() const {
  return meanOver(&BinaryEvaluation::auc);
}

double BinaryEvaluation::averagePrecision() const {
  return meanOver(&BinaryEvaluation::averagePrecision);
}

double BinaryEvaluation::exactMatch() const {
  return quotient(allRight_, examples_);
}

void BinaryEvaluation::setLabelNames(std::vector<std::string> names) {
  require(std::ssize(names) == labels(), "evaluation: {} for {}", plural(names.size(), "name"),
          plural(labels(), "label"));
  names_ = std::move(names);
}

std::string BinaryEvaluation::summary() const {
  constexpr auto kRow = "{:>{}} {:>10} {:>10.4f} {:>10.4f} {:>10.4f} {:>10.4f} {:>10.4f} {:>10.4f}\n";
  std::vector<std::string> names;
  for (std::int64_t l = 0; l < std::min(labels(), kMostRows); ++l)
    names.push_back(names_.empty() ? fmt::format("{}", l)
                                   : printableText(names_[static_cast<std::size_t>(l)]));
  const int width = detail::labelWidth(names);
  std::string text = fmt::format("{}, {}: accuracy {:.4f}, AUC {:.4f}", plural(examples_, "example"),
                                 plural(labels(), "label"), accuracy(), auc());
  if (labels() > 1) text += fmt::format(", all labels right {:.4f}", exactMatch());
  text += fmt::format("\n\n{:>{}} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "label", width,
                      "positives", "accuracy", "precision", "recall", "F1", "AUC", "AP");
  for (std::int64_t l = 0; l < std::ssize(names); ++l)
    text += fmt::format(kRow, names[static_cast<std::size_t>(l)], width, positives(l), accuracy(l),
                        precision(l), recall(l), f1(l), auc(l), averagePrecision(l));
  if (labels() > kMostRows)
    text += fmt::format("{:>{}} not printed: {}\n", "...", width, labels() - kMostRows);
  if (labels() > 1)
    text += fmt::format(kRow, "mean", width, "", accuracy(), precision(), recall(), f1(), auc(),
                        averagePrecision());
  return text;
}

std::vector<std::int64_t> BinaryEvaluation::toNumbers() const {
  std::vector<std::int64_t> numbers = {labels(), examples_, allRight_};
  for (const Label& label : labels_) numbers.push_back(std::ssize(label.with));
  for (const Label& label : labels_)
    for (const auto* predictions : {&label.with, &label.without})
      for (const float prediction : descending(*predictions))
        numbers.push_back(std::bit_cast<std::int32_t>(prediction));
  return numbers;
}

BinaryEvaluation BinaryEvaluation::fromNumbers(std::span<const std::int64_t> numbers) {
  constexpr std::size_t kHead = 3;
  const auto refuse = [&](bool wrong) {
    require(!wrong, "evaluation: these {} numbers are none", numbers.size());
  };
  refuse(numbers.size() < kHead || numbers[0] < 1 || numbers[1] < 0 || numbers[2] < 0 ||
         numbers[2] > numbers[1]);
  const auto labels = static_cast<std::size_t>(numbers[0]), examples = static_cast<std::size_t>(numbers[1]);
  refuse(labels >= numbers.size() || examples >= numbers.size() + 1 ||
         numbers.size() != kHead + labels + labels * examples);
  BinaryEvaluation all(numbers[0]);
  all.examples_ = numbers[1];
  all.allRight_ = numbers[2];
  const auto counts = numbers.subspan(kHead, labels);
  auto rest = numbers.subspan(kHead + labels);
  for (std::size_t l = 0; l < labels; ++l) {
    refuse(counts[l] < 0 || counts[l] > numbers[1]);
    for (std::size_t i = 0; i < examples; ++i) {
      const float prediction = std::bit_cast<float>(static_cast<std::int32_t>(rest[i]));
      refuse(!std::isfinite(prediction));
      (static_cast<std::int64_t>(i) < counts[l] ? all.labels_[l].with : all.labels_[l].without)
          .push_back(prediction);
    }
    rest = rest.subspan(examples);
  }
  return all;
}

}  // namespace muster
