#include "muster/core/optim/optimizer.h"

#include <cmath>
#include <string>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/optim/finite_gradient.h"

namespace muster {
namespace {

constexpr std::int64_t kMostAccumulated = 1 << 20;

void requireNotNegative(std::string_view option, double value) {
  require(std::isfinite(value) && value >= 0, "training options: {} must be finite and not negative, got {}",
          option, value);
}

UpdateRange rangeOf(const Segment& segment, const TrainingOptions& options) {
  const bool regularised = segment.regularised;
  return {.begin = segment.offset,
          .end = segment.offset + segment.shape.elements(),
          .learningRate = segment.learningRateScale,
          .l1 = regularised ? static_cast<float>(options.l1) : 0,
          .l2 = regularised ? static_cast<float>(options.l2) : 0,
          .weightDecay = regularised ? static_cast<float>(options.weightDecay) : 0,
          .regularised = regularised};
}

StateBlock onCpu(StateBlock block) {
  block.values = copyTo(block.values, Device::cpu());
  return block;
}

void refuse(const StateBlock& block, std::string_view what) try {
  requireFiniteBlock(onCpu(block), fmt::format("after an update the {}", what));
} catch (const NonFiniteScore& error) {
  throw UpdateRefused(error.what());
}

}  // namespace

void TrainingOptions::fields(Fields& f) {
  updater.field("updater", f);
  f.field("l1", l1);
  f.field("l2", l2);
  f.field("weightDecay", weightDecay);
  f.field("clipNorm", clipNorm);
  f.field("clipValue", clipValue);
  f.field("accumulate", accumulate);
}

void TrainingOptions::validate() const {
  updater.validate();
  requireNotNegative("l1", l1);
  requireNotNegative("l2", l2);
  requireNotNegative("weightDecay", weightDecay);
  requireNotNegative("clipNorm", clipNorm);
  requireNotNegative("clipValue", clipValue);
  require(accumulate >= 1 && accumulate <= kMostAccumulated,
          "training options: accumulate must be between 1 and {} batches, got {}", kMostAccumulated,
          accumulate);
}

Optimizer::Optimizer(TrainingOptions options, const StateBlock& parameters) : options_(std::move(options)) {
  options_.validate();
  require(parameters.values.dtype() == DType::Float32,
          "updater {}: parameters must be float32, got {}; a model with others implements update() and "
          "updaterState()",
          options_.updater.type(), toString(parameters.values.dtype()));
  for (const auto& name : options_.updater.stateNames())
    state_.push_back(StateBlock::zeros(name, BlockKind::UpdaterState, MergeRule::Average, parameters.segments,
                                       DType::Float32, parameters.values.device()));
  require(state_.size() <= std::tuple_size_v<decltype(UpdateBlocks::state)>,
          "updater {}: it keeps {} state blocks, more than an update has", options_.updater.type(),
          state_.size());
  for (const auto& segment : parameters.segments->segments) {
    const UpdateRange range = rangeOf(segment, options_);
    if (segment.frozen || range.begin == range.end) continue;
    // Segments with padding between them cannot share a range: padding is never updated.
    if (!ranges_.empty() && ranges_.back().end == range.begin &&
        ranges_.back().regularised == range.regularised &&
        ranges_.back().learningRate == range.learningRate) {
      ranges_.back().end = range.end;
      continue;
    }
    ranges_.push_back(range);
  }
  settings_ = options_.updater.settings();
  if (!settings_) {
    stepRanges_ = ranges_;
    if (const Device device = parameters.values.device(); !device.isCpu())
      logWarning("updater {}: it has no settings(), so each step waits for its apply() on {}",
                 options_.updater.type(), device.toString());
    return;
  }
  settings_->clipNorm = options_.clipNorm;
  settings_->clipValue = options_.clipValue;
}

void Optimizer::prepare(const StateBlock& parameters, Context& context) {
  if (!enqueues()) {
    if (!kept_.empty()) return;
    std::vector<Tensor> made;
    for (std::size_t i = 0; i <= state_.size(); ++i)
      made.push_back(Tensor::empty(parameters.values.shape(), DType::Float32, context.device()));
    kept_ = std::move(made);
    return;
  }
  plan(parameters, context);
  if (numbers_.defined()) return;
  const Device device = context.device();
  const auto onHost = [&](std::int64_t count) {
    return device.isCpu() ? Tensor::zeros({count}, DType::Float64) : Tensor::pinned({count}, DType::Float64);
  };
  hostNumbers_ = onHost(kUpdateNumbers);
  hostOutcome_ = onHost(2);
  numbers_ = device.isCpu() ? hostNumbers_ : Tensor::zeros({kUpdateNumbers}, DType::Float64, device);
  outcome_ = device.isCpu() ? hostOutcome_ : Tensor::zeros({2}, DType::Float64, device);
  penalty_ = outcome_.slice(0, {1});
  badGradient_ = outcome_.slice(1, {1});
}

double Optimizer::apply(StateBlock& parameters, const StateBlock& gradients, std::int64_t iteration,
                        std::int64_t epoch, Context& context, std::int64_t updates) {
  if (updates == 0) updates = iteration + 1;
  prepare(parameters, context);
  if (!enqueues()) return applyOwn(parameters, gradients, iteration, epoch, updates, context);
  const bool apart = !context.device().isCpu();
  writeNumbers(iteration, epoch, updates, hostNumbers_);
  if (apart) copy(hostNumbers_, numbers_, context);
  // On the CPU the gradient was checked when it was computed.
  enqueue(parameters, gradients, numbers_, penalty_, {}, apart ? badGradient_ : Tensor());
  if (apart) copy(outcome_, hostOutcome_, context);
  context.synchronize();
  const double* const outcome = hostOutcome_.data<double>();
  if (apart && outcome[1] >= 0)
    throwNonFiniteGradient(*parameters.segments, static_cast<std::int64_t>(outcome[1]));
  return outcome[0];
}

double Optimizer::applyOwn(const StateBlock& parameters, const StateBlock& gradients, std::int64_t iteration,
                           std::int64_t epoch, std::int64_t updates, Context& context) {
  if (!isFinite(gradients, context)) requireFiniteGradient(onCpu(gradients));
  UpdateBlocks blocks = blocksOf(parameters, gradients);
  copy(blocks.parameters, kept_[0], context);
  for (std::size_t i = 0; i < state_.size(); ++i) copy(blocks.state[i], kept_[i + 1], context);
  try {
    const double penalty = applyUnchecked(blocks, iteration, epoch, updates, context);
    if (!isFinite(parameters, context)) refuse(parameters, "parameters");
    for (const auto& state : state_)
      if (!isFinite(state, context)) refuse(state, "updater's numbers");
    if (!std::isfinite(penalty))
      throw UpdateRefused(
          fmt::format("updater {}: its apply() returned the penalty {}", options_.updater.type(), penalty));
    return penalty;
  } catch (...) {
    copy(kept_[0], blocks.parameters, context);
    for (std::size_t i = 0; i < state_.size(); ++i) copy(kept_[i + 1], blocks.state[i], context);
    context.synchronize();
    throw;
  }
}

bool Optimizer::isFinite(const StateBlock& block, Context& context) const {
  double squares = 0;  // float64: squares of float32 values cannot overflow it
  for (const auto& range : ranges_) squares += squaredNorm(block.values, range.begin, range.end, context);
  return std::isfinite(squares);
}

double Optimizer::applyUnchecked(const UpdateBlocks& blocks, std::int64_t iteration, std::int64_t epoch,
                                 std::int64_t updates, Context& context) {
  const double rate = learningRate(iteration, epoch);
  for (std::size_t i = 0; i < ranges_.size(); ++i)
    stepRanges_[i].learningRate = rate * ranges_[i].learningRate;
  return options_.updater.apply({.blocks = blocks,
                                 .ranges = stepRanges_,
                                 .gradientScale = clipScale(blocks.gradients, context),
                                 .clipValue = static_cast<float>(options_.clipValue),
                                 .iteration = iteration,
                                 .updates = updates},
                                context);
}

double Optimizer::learningRate(std::int64_t iteration, std::int64_t epoch) const {
  const Schedule& schedule = options_.updater.learningRate();
  const double rate = schedule.at(iteration, epoch);
  if (!(rate >= 0 && std::isfinite(rate))) [[unlikely]]
    throw InvalidArgument(fmt::format(
        "schedule {}: the learning rate must be finite and not negative, but at iteration {} it is {}",
        schedule.type(), iteration, rate));
  return rate * (factor_ ? *factor_ : 1.0);
}

UpdateBlocks Optimizer::blocksOf(const StateBlock& parameters, const StateBlock& gradients) const {
  UpdateBlocks blocks{parameters.values, gradients.values, {}};
  for (std::size_t i = 0; i < state_.size(); ++i) blocks.state[i] = state_[i].values;
  return blocks;
}

void Optimizer::plan(const StateBlock& parameters, Context& context) {
  require(enqueues(), "updater {}: it has no settings(), so it can only be applied", options_.updater.type());
  if (plannedFor_ == &context) return;
  if (!refused_.defined()) refused_ = Tensor::zeros({1}, DType::Float64, context.device());
  plan_ = planUpdate(*settings_, parameters.values.elements(), ranges_, context);
  plannedFor_ = &context;
}

void Optimizer::writeNumbers(std::int64_t iteration, std::int64_t epoch, std::int64_t updates,
                             Tensor& numbers) const {
  writeUpdateNumbers(settings_->rule, learningRate(iteration, epoch), updates, 1, numbers);
}

void Optimizer::enqueue(StateBlock& parameters, const StateBlock& gradients, const Tensor& numbers,
                        Tensor& penalty, const Tensor& losses, const Tensor& badGradient) {
  plan_->run(blocksOf(parameters, gradients), numbers, penalty, losses,
             {.badGradient = badGradient, .refused = refused_});
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
