#include "muster/core/nn/step/label_values.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include "muster/core/base/error.h"

namespace muster::detail {
namespace {

// For rounding, as of shares that another model computed, or that were written with two digits.
constexpr float kSlack = 1e-3f;
constexpr double kSlackOfSum = 0.015;

/// The float32 rows of a batch's tensor in host memory: its own, or those whose numbers it has.
class HostRows {
 public:
  explicit HostRows(const NamedTensor& named)
      : all_(named.source ? named.source->onCpu() : named.value),
        rows_(named.source ? &named.value : nullptr) {}

  bool readable() const {
    return all_.defined() && all_.device().isCpu() && all_.dtype() == DType::Float32 &&
           all_.layout() == Layout::RowMajor && (!rows_ || rows_->device().isCpu());
  }
  const Shape& shape() const { return all_.shape(); }
  std::int64_t examples() const { return rows_ ? rows_->elements() : all_.shape()[0]; }
  /// Of one example; empty for a row that does not exist, which another check refuses.
  std::span<const float> of(std::int64_t example) const {
    const std::int64_t row = rows_ ? rows_->data<std::int64_t>()[example] : example, count = all_.shape()[0];
    if (row < 0 || row >= count) return {};
    const auto each = static_cast<std::size_t>(all_.elements() / count);
    return all_.span<float>().subspan(static_cast<std::size_t>(row) * each, each);
  }

 private:
  const Tensor& all_;
  const Tensor* rows_;
};

const NamedTensor* maskFor(const Batch& batch, std::string_view output, bool named, int rank) {
  const auto found = std::ranges::find_if(batch.masks, [&](const NamedTensor& mask) {
    return mask.name != "features" && (!named || mask.name == output);
  });
  if (found != batch.masks.end()) return &*found;
  const auto steps = std::ranges::find(batch.masks, "features", &NamedTensor::name);
  return rank == 3 && steps != batch.masks.end() ? &*steps : nullptr;
}

bool outOfRange(float label) {
  return label < -kSlack || label > 1 + kSlack;
}

double sumOf(std::span<const float> row) {
  double sum = 0;
  for (const float share : row) sum += share;
  return sum;
}

/// Whether a row's labels are as its loss needs them.
bool fits(Loss loss, std::span<const float> row) {
  bool bad = false;
  for (const float label : row) bad |= outOfRange(label);
  if (bad || loss == Loss::BinaryCrossEntropy) return !bad;
  return !(std::abs(sumOf(row) - 1) > kSlackOfSum);
}

[[noreturn]] void refuse(Loss loss, std::span<const float> row, const std::string& place) {
  const auto found = std::ranges::find_if(row, outOfRange);
  const bool binary = loss == Loss::BinaryCrossEntropy;
  if (found != row.end()) {
    const std::string column = row.size() > 1 ? fmt::format(", column {},", found - row.begin()) : "";
    throw InvalidArgument(fmt::format("loss: the label of {}{} is {}, expected {}", place, column, *found,
                                      binary ? "0 to 1" : "a share of the class, 0 to 1"));
  }
  const double sum = sumOf(row);
  const bool several = std::ranges::count(row, 1.0f) > 1;
  throw InvalidArgument(fmt::format(
      "loss: the labels of {}, its shares of the classes, sum to {:.6g}, expected 1{}", place, sum,
      several    ? "; where several classes apply at once, take sigmoid outputs with BinaryCrossEntropy"
      : sum == 0 ? "; a row that has no class takes weight 0 in the mask"
      : std::ranges::count(row, 0.0f) == std::ssize(row) - 1
          ? "; the weight of an example is in the mask, and a loss of your own (OutputOf) may take any "
            "numbers"
          : ""));
}

}  // namespace

void requireLabelValues(const NetworkPlan& plan, const NetworkOutput& output, const Batch& batch,
                        bool named) {
  if (!output.head || output.head->own || !takesLogits(output.head->loss)) return;
  const NamedTensor* const found = batch.labelsOf(named ? std::string_view(output.name) : std::string_view());
  if (!found) return;
  const HostRows labels(*found);
  const Shape& prediction = plan.shapeOf(output.value);
  const int rank = labels.readable() ? labels.shape().rank() : 0;
  if (rank < 2 || rank != prediction.rank() + 1 || labels.shape()[-1] != prediction[-1]) return;
  const std::int64_t examples = labels.examples(), steps = rank == 3 ? labels.shape()[1] : 1;
  const auto width = static_cast<std::size_t>(prediction[-1]);
  const NamedTensor* const given = maskFor(batch, output.name, named, rank);
  if (given && (!HostRows(*given).readable() || HostRows(*given).examples() != examples)) return;
  for (std::int64_t n = 0; n < examples; ++n) {
    const auto rows = labels.of(n);
    const auto weights = given ? HostRows(*given).of(n) : std::span<const float>();
    if (rows.empty() || (given && std::ssize(weights) != steps)) continue;
    for (std::size_t t = 0; t < static_cast<std::size_t>(steps); ++t) {
      if (given && weights[t] == 0) continue;
      const auto row = rows.subspan(t * width, width);
      if (fits(output.head->loss, row)) [[likely]]
        continue;
      const Shape shape = rank == 3 ? Shape{examples, steps} : Shape{examples};
      refuse(output.head->loss, row, placeOfRow(n * steps + static_cast<std::int64_t>(t), shape));
    }
  }
}

}  // namespace muster::detail
