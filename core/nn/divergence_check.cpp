#include "muster/core/nn/divergence_check.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "muster/core/base/error.h"
#include "muster/core/nn/recompute_statistics.h"

namespace muster {
namespace {

constexpr std::int64_t kExamples = 64;

/// The first examples of a batch, in memory of its own.
Batch firstOf(const Batch& read, std::int64_t most) {
  Batch all, first;
  read.gatherInto(all);
  const std::int64_t count = std::min(all.examples(), most);
  const auto take = [&](const std::vector<NamedTensor>& from, std::vector<NamedTensor>& to) {
    for (const auto& one : from) to.push_back({one.name, cloneTensor(one.value.rows(0, count))});
  };
  take(all.features, first.features);
  take(all.labels, first.labels);
  take(all.masks, first.masks);
  return first;
}

/// Whether each row of labels is one-hot.
bool areClasses(std::span<const float> labels, std::int64_t width) {
  const auto columns = static_cast<std::size_t>(width);
  if (columns < 2) return false;
  for (std::size_t i = 0; i < labels.size(); i += columns) {
    const auto row = labels.subspan(i, columns);
    if (std::ranges::count(row, 1.0f) != 1 || std::ranges::count(row, 0.0f) != width - 1) return false;
  }
  return true;
}

double constantLoss(std::span<const Batch> batches, std::int64_t outputs) {
  const auto ofClasses = [](std::int64_t classes) {
    return std::log(static_cast<double>(std::max<std::int64_t>(classes, 2)));
  };
  double squares = 0, count = 0;
  bool classes = true, binary = true;
  for (const Batch& batch : batches) {
    const Tensor& labels = batch.labels.front().value;
    if (labels.dtype() != DType::Float32) return ofClasses(outputs);
    const auto values = labels.span<float>();
    classes = classes && areClasses(values, labels.shape()[-1]);
    binary = binary && std::ranges::all_of(values, [](float v) { return v == 0 || v == 1; });
    for (const float value : values) squares += static_cast<double>(value) * static_cast<double>(value);
    count += static_cast<double>(values.size());
  }
  return classes ? ofClasses(outputs) : binary ? std::log(2.0) : squares / std::max(count, 1.0);
}

}  // namespace

DivergenceCheck::DivergenceCheck(Model& model, DataSetIterator& data) {
  model.fitBeforeTraining(data);
  Batch read;
  std::int64_t examples = 0;
  for (data.reset(0); examples < kExamples && data.next(read); examples += batches_.back().examples())
    batches_.push_back(firstOf(read, kExamples - examples));
  if (batches_.empty()) return;
  Tensor outputs;
  model.output(batches_.front(), outputs);
  constant_ = constantLoss(batches_, outputs.shape()[-1]);
  before_ = lossOf(model);
}

double DivergenceCheck::lossOf(Model& model) const {
  double sum = 0;
  std::int64_t examples = 0;
  for (const Batch& batch : batches_) {
    sum += model.score(batch) * static_cast<double>(batch.examples());
    examples += batch.examples();
  }
  return sum / static_cast<double>(std::max<std::int64_t>(examples, 1));
}

double DivergenceCheck::lossWithOwnStatistics(Model& model) const {
  struct Kept final : DataSetIterator {
    explicit Kept(std::span<const Batch> kept) : batches(kept) {}
    void reset(std::int64_t) override { next_ = 0; }
    bool next(Batch& batch) override {
      if (next_ == batches.size()) return false;
      batch = batches[next_++];
      return true;
    }
    std::span<const Batch> batches;
    std::size_t next_ = 0;
  };
  Context context(Device::cpu());
  const auto copied = model.replicate(context);
  copied->copyStateFrom(model);
  Kept kept(batches_);
  try {
    recomputeStatistics(*copied, kept);
  } catch (const InvalidArgument&) {  // a graph with several inputs has no such pass
    return lossOf(model);
  }
  return lossOf(*copied);
}

void DivergenceCheck::requireNone(Model& model) const {
  const double limit = 2 * std::max(before_, constant_);
  double now = lossOf(model);
  if (now > limit) now = lossWithOwnStatistics(model);
  if (!std::isfinite(now))
    throw NonFiniteScore("the training diverged: the network's outputs are not numbers");
  if (now > limit)
    throw NonFiniteScore(
        fmt::format("the training diverged: its loss went from {:.3g} to {:.3g}, while that of a constant "
                    "prediction is {:.3g}",
                    before_, now, constant_));
}

}  // namespace muster
