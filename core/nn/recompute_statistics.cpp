#include "muster/core/nn/recompute_statistics.h"

#include <algorithm>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/data/input_description.h"
#include "muster/core/data/training_reads.h"
#include "muster/core/ops/merge.h"

namespace muster {
namespace {

/// Means and variances over all examples so far, float64 [2 C].
class Moments {
 public:
  explicit Moments(const Tensor& block)
      : block_(block),
        before_(copyTo(block, Device::cpu())),
        all_(Tensor::zeros(block.shape(), DType::Float64)),
        batch_(Tensor::zeros(block.shape(), DType::Float64)) {}

  /// Adds the moments of one batch, which the block holds.
  void add(std::int64_t examples, Context& context) {
    const Tensor values = copyTo(block_, Device::cpu());
    for (std::int64_t i = 0; i < values.elements(); ++i)
      batch_.data<double>()[i] = values.dtype() == DType::Float64
                                     ? values.data<double>()[i]
                                     : static_cast<double>(values.data<float>()[i]);
    const Tensor both[] = {all_, batch_};
    const double weights[] = {static_cast<double>(examples_), static_cast<double>(examples)};
    Tensor none;
    weightedMoments(both, weights, none, 0, all_.elements() / 2, context);
    examples_ += examples;
  }
  void store() {
    Tensor values = Tensor::empty(block_.shape(), block_.dtype());
    for (std::int64_t i = 0; i < values.elements(); ++i)
      if (values.dtype() == DType::Float64)
        values.data<double>()[i] = all_.data<double>()[i];
      else
        values.data<float>()[i] = static_cast<float>(all_.data<double>()[i]);
    copy(values, block_);
  }
  void restore() { copy(before_, block_); }

 private:
  Tensor block_, before_, all_, batch_;
  std::int64_t examples_ = 0;
};

}  // namespace

void recomputeStatistics(Model& model, DataSetIterator& data) {
  model.requireNotTrainedElsewhere("recompute statistics");
  requireNotRead(data, "recompute statistics");
  requireSameInput(data, model.inputDescription(), "recompute statistics");
  std::vector<Moments> moments;
  model.context().synchronize();
  for (const auto& block : model.blocks())
    if (block.kind == BlockKind::Statistics && block.merge == MergeRule::Moments)
      moments.emplace_back(block.values);
  if (moments.empty()) return;
  try {
    Context onCpu;
    Batch batch;
    Tensor output;
    data.reset(0);
    ForwardPass pass{.training = true, .replaceStatistics = true};
    for (; data.next(batch); pass.firstExample += batch.examples()) {
      model.forward(batch.features.at(0).value, output, pass);
      model.context().synchronize();
      for (auto& one : moments) one.add(batch.examples(), onCpu);
    }
    require(pass.firstExample > 0, "recompute statistics: the data set has no examples");
    for (auto& one : moments) one.store();
  } catch (...) {
    for (auto& one : moments) one.restore();
    throw;
  }
}

}  // namespace muster
