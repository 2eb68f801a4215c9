#pragma once

#include "muster/core/base/error.h"
#include "tests/support/one_block_model.h"

namespace muster::test {

class LateScores;

struct LateOptions {
  bool knowsWeights = false;   ///< when a step begins
  bool tellsRefusals = false;  ///< `stepRefused`: merges need not wait for scores
  /// Called when a score is read. Another worker may be merging the replica then.
  std::function<void(double score, const LateScores& replica)> onWait = {};
};

/// A model whose steps run until a caller waits for their scores. A step's score is the first number of its
/// batch, and so is the parameter after it, even if not finite; it weighs the batch's examples.
class LateScores final : public OneBlockModel, PendingScores {
 public:
  /// A batch that begins with it fails.
  static constexpr float kFailing = -1;

  explicit LateScores(LateOptions options = {}, Context* context = nullptr)
      : OneBlockModel(context), options_(std::move(options)) {}
  std::unique_ptr<Model> replicate(Context& context) const override {
    return std::make_unique<LateScores>(options_, &context);
  }
  Tensor stepRefused() override { return options_.tellsRefusals ? refused_ : Tensor(); }
  StepTicket step(const Batch& batch) override {
    const float value = batch.features[0].value.data<float>()[0];
    if (value == kFailing) throw DeviceFailure("the step failed");
    scores_.push_back({.score = value, .weight = static_cast<double>(batch.examples())});
    *refused_.data<double>() = std::isfinite(value) ? 0 : 1;
    *blocks_[0].values.data<float>() = value;
    calls += fmt::format("step{} ", scores_.size());
    if (!options_.knowsWeights) return {*this, scores_.size()};
    return {*this, scores_.size(), scores_.back().weight};
  }
  bool ready(std::uint64_t) override { return false; }
  StepScore wait(std::uint64_t step) override {
    calls += fmt::format("wait{} ", step);
    const StepScore score = scores_.at(step - 1);
    if (options_.onWait) options_.onWait(score.score, *this);
    return score;
  }
  float parameter() const { return *blocks_[0].values.data<float>(); }

  std::string calls;  ///< in their order

 private:
  const LateOptions options_;
  std::vector<StepScore> scores_;
  Tensor refused_ = Tensor::zeros({1}, DType::Float64);
};

}  // namespace muster::test
