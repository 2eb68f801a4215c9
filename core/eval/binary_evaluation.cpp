#include "muster/core/eval/binary_evaluation.h"

#include <algorithm>
#include <bit>
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

constexpr std::int64_t kMostRows = 30;  // of a table

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
      labels_[l].add(predicted[l] + 0.0f, actual[l] == 1);  // no -0
      right = right && detail::BinaryLabel::isPredicted(predicted[l]) == (actual[l] == 1);
    }
    ++examples_;
    allRight_ += right ? 1 : 0;
  }
}

void BinaryEvaluation::merge(const BinaryEvaluation& other) {
  require(labels() == other.labels(), "evaluation: one of {} labels cannot be merged with one of {}",
          labels(), other.labels());
  for (std::size_t l = 0; l < labels_.size(); ++l) labels_[l].merge(other.labels_[l]);
  examples_ += other.examples_;
  allRight_ += other.allRight_;
}

const detail::BinaryLabel& BinaryEvaluation::labelAt(std::int64_t label) const {
  require(label >= 0 && label < labels(), "evaluation: there is no label {}, only 0 to {}", label,
          labels() - 1);
  return labels_[static_cast<std::size_t>(label)];
}

/// Over the labels for which it is a number.
double BinaryEvaluation::meanOver(double (detail::BinaryLabel::*score)() const) const {
  double sum = 0;
  std::int64_t count = 0;
  for (const auto& label : labels_)
    if (const double value = (label.*score)(); !std::isnan(value)) {
      sum += value;
      ++count;
    }
  return count == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(count);
}

void BinaryEvaluation::setLabelNames(std::vector<std::string> names) {
  require(std::ssize(names) == labels(), "evaluation: {} for {}", plural(names.size(), "name"),
          plural(labels(), "label"));
  names_ = std::move(names);
}

std::string BinaryEvaluation::summary() const {
  constexpr auto kRow = "{:>{}} {:>10} {:>10.4f} {:>10.4f} {:>10.4f} {:>10.4f} {:>10} {:>10}\n";
  std::vector<std::string> names;
  for (std::int64_t l = 0; l < std::min(labels(), kMostRows); ++l)
    names.push_back(names_.empty() ? fmt::format("{}", l)
                                   : printableText(names_[static_cast<std::size_t>(l)]));
  const int width = detail::labelWidth(names);
  std::string text = fmt::format("{}, {}: accuracy {:.4f}, AUC {}", plural(examples_, "example"),
                                 plural(labels(), "label"), accuracy(), detail::scoreText(auc()));
  if (labels() > 1) text += fmt::format(", all labels right {:.4f}", exactMatch());
  text += fmt::format("\n\n{:>{}} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "label", width,
                      "positives", "accuracy", "precision", "recall", "F1", "AUC", "AP");
  for (std::int64_t l = 0; l < std::ssize(names); ++l)
    text +=
        fmt::format(kRow, names[static_cast<std::size_t>(l)], width, positives(l), accuracy(l), precision(l),
                    recall(l), f1(l), detail::scoreText(auc(l)), detail::scoreText(averagePrecision(l)));
  if (labels() > kMostRows)
    text += fmt::format("{:>{}} not printed: {}\n", "...", width, labels() - kMostRows);
  if (labels() > 1)
    text += fmt::format(kRow, "mean", width, "", accuracy(), precision(), recall(), f1(),
                        detail::scoreText(auc()), detail::scoreText(averagePrecision()));
  return text;
}

std::vector<std::int64_t> BinaryEvaluation::toNumbers() const {
  std::vector<std::int64_t> numbers = {labels(), examples_, allRight_};
  for (const auto& label : labels_) numbers.push_back(std::ssize(label.with));
  for (const auto& label : labels_)
    for (const auto* predictions : {&label.with, &label.without})
      for (const float prediction : detail::descending(*predictions))
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
      const auto bits = static_cast<std::int32_t>(rest[i]);
      const float prediction = std::bit_cast<float>(bits);
      refuse(bits != rest[i] || !std::isfinite(prediction));
      all.labels_[l].add(prediction, static_cast<std::int64_t>(i) < counts[l]);
    }
    rest = rest.subspan(examples);
  }
  return all;
}

}  // namespace muster
