#include "muster/core/nn/model.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string_view>

#include "muster/core/base/error.h"
#include "muster/core/nn/compile/copy_blocks.h"
#include "muster/core/nn/step/guarded_step.h"
#include "muster/core/optim/finite_gradient.h"

namespace muster {
namespace {

/// A schedule times a number that may change.
struct ScaledSchedule {
  static constexpr std::string_view kType = "scaled";
  Schedule schedule;
  std::shared_ptr<const double> factor;
  double at(std::int64_t iteration, std::int64_t epoch) const {
    return schedule.at(iteration, epoch) * *factor;
  }
  void fields(Fields& f) { schedule.field("schedule", f); }
  void validate() const { schedule.validate(); }
};

}  // namespace

Model::Model(TrainingOptions options, Context* context)
    : options_(std::move(options)),
      ownContext_(context ? nullptr : std::make_unique<Context>()),
      context_(context ? context : ownContext_.get()),
      step_(std::make_unique<detail::GuardedStep>()) {
  options_.validate();
}

Model::~Model() = default;

Optimizer& Model::optimizer() {
  if (!optimizer_) {
    const StateBlock& parameters = block(BlockKind::Parameters);
    auto made = std::make_unique<Optimizer>(options_, parameters);
    made->prepare(parameters, *context_);
    made->followFactor(learningRateFactor_);
    optimizer_ = std::move(made);
  }
  return *optimizer_;
}

double Model::update(const BatchStamp& stamp) {
  ContextScope scope(*context_);
  StateBlock& parameters = block(BlockKind::Parameters);
  const StateBlock& gradients = block(BlockKind::Gradients);
  const double penalty =
      optimizer().apply(parameters, gradients, stamp.iteration, stamp.epoch, *context_, updatesAt(stamp));
  if (std::isnan(penalty)) refuseUpdate(parameters, gradients);
  return penalty;
}

StepTicket Model::step(const Batch& batch) {
  return StepTicket(step_->run(*this, batch, !optimizer_));
}

void Model::setLearningRateFactor(double factor) {
  require(std::isfinite(factor) && factor >= 0,
          "model: the learning rate's factor must be finite and not negative, got {}", factor);
  *learningRateFactor_ = factor;
}

void Model::followLearningRate(const Model& other) {
  learningRateFactor_ = other.learningRateFactor_;
  if (optimizer_) optimizer_->followFactor(learningRateFactor_);
}

Schedule Model::learningRate() const {
  return ScaledSchedule{options_.updater.learningRate(), learningRateFactor_};
}

void Model::forward(const Tensor&, Tensor&, const ForwardPass&) {
  throw InvalidArgument("model: this model has no forward()");
}

void Model::forward(const Tensor& input, Tensor& output) {
  forward(input, output, {.call = passes_});
  ++passes_;
}

void Model::backward(const Tensor&, Tensor*) {
  throw InvalidArgument("model: this model has no backward()");
}

std::vector<StateBlock*> Model::state() {
  std::vector<StateBlock*> all;
  for (auto& b : blocks()) all.push_back(&b);
  for (auto& b : updaterState()) all.push_back(&b);
  all.push_back(&counters());
  return all;
}

StateBlock& Model::block(BlockKind kind) {
  for (auto& b : blocks())
    if (b.kind == kind) return b;
  throw InvalidArgument(kind == BlockKind::Gradients
                            ? "model: it has no gradient block"
                            : "model: it has no parameters yet; call init() first, or fit() it");
}

std::int64_t Model::parameterCount() {
  std::int64_t count = 0;
  for (const auto& segment : block(BlockKind::Parameters).segments->segments)
    count += segment.shape.elements();
  return count;
}

void Model::copyStateFrom(Model& other, bool withUpdaterState) {
  context_->synchronize();
  other.context_->synchronize();
  const std::int64_t ownUpdates = updates();
  const auto mine = state();
  detail::copyBlocks(other.state(), mine, withUpdaterState);
  lastScore_ = other.lastScore_;
  setLoadedFrom(withUpdaterState ? other.loadedFrom() : std::filesystem::path());
  if (withUpdaterState) return copyAttached(other);
  // An updater without state is the other's, whose updates it continues to count.
  const bool counts = std::ranges::any_of(
      mine, [](const StateBlock* block) { return block->kind == BlockKind::UpdaterState; });
  if (counts) setUpdates(ownUpdates);
}

}  // namespace muster
