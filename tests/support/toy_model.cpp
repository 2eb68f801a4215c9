#include "tests/support/toy_model.h"

#include "muster/core/base/error.h"

namespace muster::test {

void ToyControl::record(ToyStep step) {
  std::scoped_lock lock(mutex_);
  steps_.push_back(std::move(step));
}

std::vector<ToyStep> ToyControl::steps() const {
  std::scoped_lock lock(mutex_);
  auto sorted = steps_;
  std::ranges::sort(sorted, {}, [](const ToyStep& s) { return std::tuple(s.stamp.epoch, s.stamp.sequence); });
  return sorted;
}

void ToyControl::forgetSteps() {
  std::scoped_lock lock(mutex_);
  steps_.clear();
}

namespace {

StateBlock makeStatistics(std::int64_t size) {
  auto table = std::make_shared<SegmentTable>();
  table->add({.name = "mean", .shape = {size}});
  table->add({.name = "variance", .shape = {size}});
  return StateBlock::zeros("statistics", BlockKind::Statistics, MergeRule::Moments, table);
}

/// The first half of split parameters is a multiple of 16, so no padding follows it.
std::shared_ptr<SegmentTable> parameterTable(const ToyOptions& options) {
  auto table = std::make_shared<SegmentTable>();
  const std::int64_t first = options.split ? (options.size / 2 + 15) / 16 * 16 : options.size;
  table->add({.name = "p", .shape = {first}});
  if (options.split) table->add({.name = "q", .shape = {options.size - first}});
  return table;
}

std::vector<float> valuesOf(const StateBlock& block, std::string_view segment) {
  const auto values = block.segment(segment).span<float>();
  return {values.begin(), values.end()};
}

std::vector<float> firstOf(const StateBlock& block, std::int64_t count) {
  const auto* const values = block.values.data<float>();
  return {values, values + count};
}

}  // namespace

ToyModel::ToyModel(ToyOptions options, std::shared_ptr<ToyControl> control, Context* context)
    : Model(options.training, context),
      options_(options),
      control_(control ? std::move(control) : std::make_shared<ToyControl>()) {
  const auto table = parameterTable(options_);
  blocks_.push_back(StateBlock::zeros("parameters", BlockKind::Parameters, MergeRule::Average, table));
  blocks_.push_back(StateBlock::zeros("gradients", BlockKind::Gradients, MergeRule::Keep, table));
  if (options_.statistics) blocks_.push_back(makeStatistics(options_.size));
  ++control_->alive;
}

ToyModel::~ToyModel() {
  --control_->alive;
}

std::unique_ptr<Model> ToyModel::replicate(Context& context) const {
  const int number = control_->replicated++;
  if (control_->onReplicate) control_->onReplicate(number);
  if (control_->replicateNothing) return nullptr;
  auto options = options_;
  if (control_->replicaSize > 0) options.size = control_->replicaSize;
  auto replica = std::make_unique<ToyModel>(options, control_, &context);
  if (control_->shareMemory) replica->blocks_ = blocks_;
  return replica;
}

StepTicket ToyModel::gradient(const Batch& batch) {
  const Tensor& x = batch.features.front().value;
  control_->record({batch.stamp, std::this_thread::get_id(), this, blocks_[0].values.data<float>(),
                    parameters(), iteration(), epoch()});
  if (control_->onStep) control_->onStep(batch);
  require(x.shape().rank() == 2 && x.shape()[1] == options_.size, "toy: expected [N, {}], got {}",
          options_.size, x.shape().toString());
  const std::int64_t size = options_.size;
  const float* p = blocks_[0].values.data<float>();
  float* gradients = blocks_[1].values.data<float>();
  const float* mask = batch.masks.empty() ? nullptr : batch.masks.front().value.data<float>();
  std::vector<double> sums(static_cast<std::size_t>(size));
  double weight = 0, loss = 0;
  for (std::int64_t n = 0; n < batch.examples(); ++n) {
    const double share = mask ? mask[n] : 1;
    weight += share;
    for (std::int64_t j = 0; j < size; ++j) {
      const double difference = static_cast<double>(p[j]) - x.data<float>()[n * size + j];
      sums[j] += share * difference;
      loss += 0.5 * share * difference * difference;
    }
  }
  for (std::int64_t j = 0; j < size; ++j)
    gradients[j] = weight > 0 ? static_cast<float>(sums[j] / weight) : 0.0f;
  if (options_.statistics) takeStatistics(x);
  double score = weight > 0 ? loss / weight : 0;
  if (control_->reportedScore) score = control_->reportedScore(batch, score);
  if (control_->reportedWeight) weight = control_->reportedWeight(batch);
  return StepTicket({.score = score, .weight = weight});
}

double ToyModel::update(const BatchStamp& stamp) {
  if (control_->onUpdate) control_->onUpdate(*this, stamp);
  return Model::update(stamp);
}

void ToyModel::takeStatistics(const Tensor& x) {
  float* mean = blocks_[2].segment("mean").data<float>();
  float* variance = blocks_[2].segment("variance").data<float>();
  const auto examples = static_cast<double>(x.shape()[0]);
  for (std::int64_t j = 0; j < options_.size; ++j) {
    double sum = 0, squares = 0;
    for (std::int64_t n = 0; n < x.shape()[0]; ++n) sum += x.data<float>()[n * options_.size + j];
    for (std::int64_t n = 0; n < x.shape()[0]; ++n) {
      const double deviation = x.data<float>()[n * options_.size + j] - sum / examples;
      squares += deviation * deviation;
    }
    mean[j] = static_cast<float>(sum / examples);
    variance[j] = static_cast<float>(squares / examples);
  }
}

void ToyModel::output(const Batch& batch, Tensor& out) {
  if (control_->onOutput) control_->onOutput(batch);
  const Tensor& x = batch.features.front().value;
  const auto p = parameters();
  out = Tensor::empty(x.shape());
  for (std::int64_t i = 0; i < x.elements(); ++i)
    out.data<float>()[i] = x.data<float>()[i] + p[static_cast<std::size_t>(i % options_.size)];
}

std::vector<float> ToyModel::parameters() {
  return firstOf(blocks_[0], options_.size);
}

void ToyModel::setParameters(const std::vector<float>& values) {
  require(static_cast<std::int64_t>(values.size()) == options_.size, "toy: {} values for {} parameters",
          values.size(), options_.size);
  std::ranges::copy(values, blocks_[0].values.data<float>());
}

std::vector<float> ToyModel::statistics() {
  auto values = valuesOf(blocks_.at(2), "mean");
  const auto variances = valuesOf(blocks_[2], "variance");
  values.insert(values.end(), variances.begin(), variances.end());
  return values;
}

std::vector<float> ToyModel::updaterState(std::string_view name) {
  for (auto* block : state())
    if (block->kind == BlockKind::UpdaterState && block->name == name) return firstOf(*block, options_.size);
  throw InvalidArgument(fmt::format("toy: its updater keeps no {}", name));
}

}  // namespace muster::test
