#include "muster/core/nn/model.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string_view>

#include "muster/core/base/error.h"
#include "muster/core/data/input_description.h"
#include "muster/core/data/non_finite_value.h"
#include "muster/core/nn/step/kept_statistics.h"
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

StateBlock makeCounters() {
  auto table = std::make_shared<SegmentTable>();
  // Adjacent scalars: int64 needs no further alignment.
  table->segments = {{.name = "iteration", .shape = {}, .offset = 0, .regularised = false},
                     {.name = "epoch", .shape = {}, .offset = 1, .regularised = false},
                     {.name = "updaterBegan", .shape = {}, .offset = 2, .regularised = false}};
  table->elements = 3;
  return StateBlock::zeros("counters", BlockKind::Counters, MergeRule::Keep, table, DType::Int64);
}

}  // namespace

Model::Model(TrainingOptions options, Context* context)
    : options_(std::move(options)),
      ownContext_(context ? nullptr : std::make_unique<Context>()),
      context_(context ? context : ownContext_.get()),
      statistics_(std::make_unique<detail::KeptStatistics>()),
      counters_(makeCounters()) {
  options_.validate();
}

Model::~Model() = default;

void Model::prepare(const Batch&) {}

void Model::fitBeforeTraining(DataSetIterator&) {}

const InputDescription& Model::inputDescription() const {
  static const InputDescription none;
  return none;
}

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

std::span<StateBlock> Model::updaterState() {
  return optimizer().state();
}

StepTicket Model::step(const Batch& batch) {
  statistics_->keep(blocks(), *context_);
  try {
    StepScore score = gradient(batch).wait();
    // Throw before a non-finite loss or gradient changes the parameters; the caller handles it.
    requireFinite(score);
    const auto requireFiniteGradients = [&] {
      for (const auto& some : blocks())
        if (some.kind == BlockKind::Gradients) requireFiniteGradient(some);
    };
    if (!optimizer_) requireFiniteGradients();  // an optimizer checks the gradient itself
    try {
      requireFiniteStatistics(blocks());
    } catch (const NonFiniteScore&) {
      requireFiniteGradients();  // if both are not finite, the gradient says more
      throw;
    }
    score.score += update(batch.stamp);
    return StepTicket(score);
  } catch (const NonFiniteScore&) {
    statistics_->restore(blocks(), *context_);
    if (const auto where = nonFiniteValue(batch)) throw NonFiniteScore(*where);
    throw;
  } catch (...) {  // the forward pass may have moved them
    statistics_->restore(blocks(), *context_);
    throw;
  }
}

void Model::output(const Batch&, Tensor&) {
  throw InvalidArgument("model: this model has no output()");
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

std::optional<StepScore> Model::outputAndLoss(const Batch& batch, Tensor& out) {
  output(batch, out);
  return {};
}

std::string_view Model::outputName() const {
  return {};
}

double Model::score(const Batch&) {
  throw InvalidArgument("model: this model has no score()");
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
  all.push_back(&counters_);
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
  const auto theirs = other.state();
  require(mine.size() == theirs.size(), "model: one has {} state blocks, the other {}", mine.size(),
          theirs.size());
  for (std::size_t i = 0; i < mine.size(); ++i) {
    require(mine[i]->name == theirs[i]->name && mine[i]->values.shape() == theirs[i]->values.shape(),
            "model: block {} {} cannot be copied to block {} {}", theirs[i]->name,
            theirs[i]->values.shape().toString(), mine[i]->name, mine[i]->values.shape().toString());
    if (mine[i]->kind == BlockKind::Gradients) continue;
    if (mine[i]->kind == BlockKind::UpdaterState && !withUpdaterState) continue;
    copy(theirs[i]->values, mine[i]->values);
  }
  lastScore_ = other.lastScore_;
  loadedFrom_ = withUpdaterState ? other.loadedFrom_ : std::filesystem::path();
  if (!withUpdaterState) {
    // An updater without state is the other's, whose updates it continues to count.
    const bool counts = std::ranges::any_of(
        mine, [](const StateBlock* block) { return block->kind == BlockKind::UpdaterState; });
    if (counts) setUpdates(ownUpdates);
    return;
  }
  strategyState_.clear();
  for (const auto& [name, values] : other.strategyState_)
    strategyState_.push_back({name, cloneTensor(values)});
  listenerState_.clear();
  for (const auto& [name, values] : other.listenerState_)
    listenerState_.push_back({name, cloneTensor(values)});
}

std::int64_t Model::iteration() const {
  return counters_.values.data<std::int64_t>()[0];
}
std::int64_t Model::epoch() const {
  return counters_.values.data<std::int64_t>()[1];
}

void Model::setCounters(std::int64_t iteration, std::int64_t epoch) {
  const std::int64_t back = std::max<std::int64_t>(0, this->iteration() - iteration);
  counters_.values.data<std::int64_t>()[2] -= back;
  counters_.values.data<std::int64_t>()[0] = iteration;
  counters_.values.data<std::int64_t>()[1] = epoch;
}

std::int64_t Model::updates() const {
  return std::max<std::int64_t>(0, iteration() - counters_.values.data<std::int64_t>()[2]);
}

void Model::setUpdates(std::int64_t count) {
  require(count >= 0, "model: an updater cannot have made {} updates", count);
  counters_.values.data<std::int64_t>()[2] = iteration() - count;
}

std::int64_t Model::updatesAt(const BatchStamp& stamp) const {
  if (stamp.update > 0) return stamp.update;
  return std::max<std::int64_t>(1, stamp.iteration + 1 - counters_.values.data<std::int64_t>()[2]);
}

void Model::stopFit() {
  stopRequested_ = true;
}

}  // namespace muster
