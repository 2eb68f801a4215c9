#include "muster/core/listeners/merged_model_average.h"

#include <algorithm>
#include <array>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/ops/linear_combination.h"

namespace muster {
namespace {

std::string nameOf(const MergedModelAverageOptions& options) {
  return fmt::format("average ({}, start {}, every {})",
                     options.decay ? fmt::format("decay {}", *options.decay) : std::string("equal"),
                     options.start, options.every);
}

/// The entry `name`, moved to this device; zeros if it is missing or has another type or shape.
Tensor valuesIn(std::vector<NamedValues>& all, const std::string& name, const Shape& shape, Device device) {
  auto found = std::ranges::find(all, name, &NamedValues::name);
  if (found == all.end()) found = all.insert(all.end(), {name, {}});
  Tensor& values = found->values;
  if (!values.defined() || values.shape() != shape || values.dtype() != DType::Float64)
    values = Tensor::zeros(shape, DType::Float64, device);
  else if (values.device() != device)
    values = copyTo(values, device);
  return values;
}

}  // namespace

MergedModelAverage::MergedModelAverage(const MergedModelAverageOptions& options)
    : options_(options), name_(nameOf(options)) {
  require(!options.decay || (*options.decay >= 0 && *options.decay < 1),
          "merged model average: decay must be in [0, 1), got {}", options.decay.value_or(0));
  require(options.start >= 0, "merged model average: start cannot be negative, got {}", options.start);
  require(options.every >= 1, "merged model average: every must be at least 1, got {}", options.every);
}

void MergedModelAverage::attach(Model& model) {
  if (trained_ != &model) model_.reset();
  trained_ = &model;
  const Tensor& parameters = model.block(BlockKind::Parameters).values;
  auto& state = model.listenerState();
  average_ = valuesIn(state, name_, parameters.shape(), parameters.device());
  numbers_ = valuesIn(state, name_ + ": numbers", {2}, Device::cpu());
}

void MergedModelAverage::onFitStart(const FitEvent& event) {
  Model& model = event.trainer.model();
  average_ = numbers_ = {};
  trained_ = &model;
  if (model.blocks().empty()) return;  // Model::fit prepares it with the first batch
  const auto& state = model.listenerState();
  const bool known = std::ranges::find(state, name_, &NamedValues::name) != state.end();
  attach(model);
  double& seen = numbers_.data<double>()[1];
  // The file may have been written before this listener saw the merge.
  if (known && seen <= static_cast<double>(model.iteration())) return see(model, model.iteration());
  if (known)
    logInfo("the {} is reset: it was saved at iteration {}, and the model is at iteration {}", name_, seen,
            model.iteration());
  numbers_.data<double>()[0] = 0;
  seen = static_cast<double>(model.iteration());
}

void MergedModelAverage::onMerge(const MergeEvent& event) {
  Model& model = event.trainer.model();
  if (!average_.defined()) attach(model);
  see(model, event.iteration);
}

void MergedModelAverage::see(Model& model, std::int64_t iteration) {
  double& count = numbers_.data<double>()[0];
  double& last = numbers_.data<double>()[1];
  const auto before = static_cast<std::int64_t>(last);
  if (iteration <= before) return;
  last = static_cast<double>(iteration);
  if (iteration < options_.start || iteration / options_.every == before / options_.every) return;
  const double kept = count == 0       ? 0
                      : options_.decay ? std::min(*options_.decay, (1 + count) / (10 + count))
                                       : count / (count + 1);
  const Tensor& parameters = model.block(BlockKind::Parameters).values;
  linearCombination(std::array{Term{kept, average_}, Term{1 - kept, parameters}}, average_, 0,
                    parameters.elements(), model.context());
  ++count;
}

std::int64_t MergedModelAverage::count() const {
  return numbers_.defined() ? static_cast<std::int64_t>(numbers_.data<double>()[0]) : 0;
}

Model& MergedModelAverage::model() {
  require(count() > 0, "merged model average: no model has counted yet");
  if (!model_) {
    context_ = std::make_unique<Context>();
    model_ = trained_->replicate(*context_);
  }
  model_->copyStateFrom(*trained_, /*withUpdaterState=*/false);
  const Tensor& parameters = model_->block(BlockKind::Parameters).values;
  const Tensor average = average_.device().isCpu() ? average_ : copyTo(average_, Device::cpu());
  linearCombination(std::array{Term{1, average}}, parameters, 0, parameters.elements(), *context_);
  return *model_;
}

}  // namespace muster
