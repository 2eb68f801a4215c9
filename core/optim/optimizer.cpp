#include "muster/core/optim/optimizer.h"

#include <cmath>
#include <string>

#include "muster/core/base/error.h"

namespace muster {
namespace {

void requireNotNegative(std::string_view option, double value) {
  require(std::isfinite(value) && value >= 0, "training options: {} must be finite and not negative, got {}",
          option, value);
}

UpdateRange rangeOf(const Segment& segment, const TrainingOptions& options) {
  const bool regularised = segment.regularised;
  return {.begin = segment.offset,
          .end = segment.offset + segment.shape.elements(),
          .learningRate = 0,
          .l1 = regularised ? static_cast<float>(options.l1) : 0,
          .l2 = regularised ? static_cast<float>(options.l2) : 0,
          .weightDecay = regularised ? static_cast<float>(options.weightDecay) : 0,
          .regularised = regularised};
}

}  // namespace

void TrainingOptions::fields(Fields& f) {
  updater.field("updater", f);
  f.field("l1", l1);
  f.field("l2", l2);
  f.field("weightDecay", weightDecay);
  f.field("clipNorm", clipNorm);
  f.field("clipValue", clipValue);
}

void TrainingOptions::validate() const {
  updater.validate();
  requireNotNegative("l1", l1);
  requireNotNegative("l2", l2);
  requireNotNegative("weightDecay", weightDecay);
  requireNotNegative("clipNorm", clipNorm);
  requireNotNegative("clipValue", clipValue);
}

Optimizer::Optimizer(TrainingOptions options, const StateBlock& parameters) : options_(std::move(options)) {
  options_.validate();
  for (const auto& name : options_.updater.stateNames())
    state_.push_back(StateBlock::zeros(name, BlockKind::UpdaterState, MergeRule::Average, parameters.segments,
                                       DType::Float32, parameters.values.device()));
  require(state_.size() <= std::tuple_size_v<decltype(UpdateBlocks::state)>,
          "updater {}: it keeps {} state blocks, more than an update has", options_.updater.type(),
          state_.size());
  for (const auto& segment : parameters.segments->segments) {
    const UpdateRange range = rangeOf(segment, options_);
    if (segment.frozen || range.begin == range.end) continue;
    // Only segments without padding between them may share a range: padding is never touched.
    if (!ranges_.empty() && ranges_.back().end == range.begin &&
        ranges_.back().regularised == range.regularised &&
        learningScale_.back() == segment.learningRateScale) {
      ranges_.back().end = range.end;
      continue;
    }
    ranges_.push_back(range);
    learningScale_.push_back(segment.learningRateScale);
  }
  settings_ = options_.updater.settings();
  if (!settings_) return;
  settings_->clipNorm = options_.clipNorm;
  settings_->clipValue = options_.clipValue;
}

void Optimizer::prepare(const StateBlock& parameters, Context& context) {
  if (context.device().isCpu() || !enqueues()) return;
  plan(parameters, context);
  if (numbers_.defined()) return;
  hostNumbers_ = Tensor::pinned({kUpdateNumbers}, DType::Float64);
  hostPenalty_ = Tensor::pinned({1}, DType::Float64);
  numbers_ = Tensor::zeros({kUpdateNumbers}, DType::Float64, context.device());
  penalty_ = Tensor::zeros({1}, DType::Float64, context.device());
}

double Optimizer::apply(StateBlock& parameters, const StateBlock& gradients, std::int64_t iteration,
                        std::int64_t epoch, Context& context) {
  if (!context.device().isCpu() && enqueues())
    return applyByPlan(parameters, gradients, iteration, epoch, context);
  const double learningRate = options_.updater.learningRate().at(iteration, epoch);
  for (std::size_t i = 0; i < ranges_.size(); ++i)
    ranges_[i].learningRate = static_cast<float>(learningRate * learningScale_[i]);

  const UpdateStep step{.blocks = blocksOf(parameters, gradients),
                        .ranges = ranges_,
                        .clip = {.scale = clipScale(gradients.values, context),
                                 .clipValue = static_cast<float>(options_.clipValue)},
                        .iteration = iteration};
  return options_.updater.apply(step, context);
}

UpdateBlocks Optimizer::blocksOf(const StateBlock& parameters, const StateBlock& gradients) const {
  UpdateBlocks blocks{parameters.values, gradients.values, {}};
  for (std::size_t i = 0; i < state_.size(); ++i) blocks.state[i] = state_[i].values;
  return blocks;
}

void Optimizer::plan(const StateBlock& parameters, Context& context) {
  require(enqueues(), "updater {}: it has no settings(), so it can only be applied", options_.updater.type());
  if (plannedFor_ == &context) return;
  std::vector<UpdateRange> ranges = ranges_;
  for (std::size_t i = 0; i < ranges.size(); ++i)
    ranges[i].learningRate = static_cast<float>(learningScale_[i]);
  plan_ = planUpdate(*settings_, parameters.values.elements(), ranges, context);
  plannedFor_ = &context;
}

void Optimizer::writeNumbers(std::int64_t iteration, std::int64_t epoch, Tensor& numbers) const {
  writeUpdateNumbers(*settings_, options_.updater.learningRate().at(iteration, epoch), iteration + 1, 1,
                     numbers);
}

void Optimizer::enqueue(StateBlock& parameters, const StateBlock& gradients, const Tensor& numbers,
                        Tensor& penalty, const Tensor& losses) {
  plan_->run(blocksOf(parameters, gradients), numbers, penalty, losses);
}

double Optimizer::applyByPlan(StateBlock& parameters, const StateBlock& gradients, std::int64_t iteration,
                              std::int64_t epoch, Context& context) {
  prepare(parameters, context);
  writeNumbers(iteration, epoch, hostNumbers_);
  copy(hostNumbers_, numbers_, context);
  enqueue(parameters, gradients, numbers_, penalty_);
  copy(penalty_, hostPenalty_, context);
  context.synchronize();
  return *hostPenalty_.data<double>();
}

float Optimizer::clipScale(const Tensor& gradients, Context& context) const {
  if (options_.clipNorm == 0) return 1;
  double squares = 0;
  for (const auto& range : ranges_) squares += squaredNorm(gradients, range.begin, range.end, context);
  const double norm = std::sqrt(squares);
  return norm > options_.clipNorm ? static_cast<float>(options_.clipNorm / norm) : 1;
}

double Optimizer::penalty(const StateBlock& parameters, Context& context) const {
  return regularisationPenalty(parameters.values, ranges_, context);
}

}  // namespace muster
