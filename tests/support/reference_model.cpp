#include "tests/support/reference_model.h"

#include <numeric>

#include "muster/core/base/error.h"
#include "muster/core/base/random.h"
#include "tests/support/reference_ops.h"

namespace muster::test {
namespace {

std::shared_ptr<const SegmentTable> segmentsOf(const ReferenceOptions& o) {
  auto table = std::make_shared<SegmentTable>();
  table->add({.name = "dense1.weight", .shape = {o.hidden, o.inputs}});
  table->add({.name = "dense1.bias", .shape = {o.hidden}, .regularised = false});
  table->add({.name = "output.weight", .shape = {o.classes, o.hidden}});
  table->add({.name = "output.bias", .shape = {o.classes}, .regularised = false});
  return table;
}

/// Draws the same weights as the float32 network; biases stay 0.
void draw(StateBlock& parameters, std::string_view name, std::uint64_t seed) {
  const Tensor weight = parameters.segment(name);
  Tensor drawn = Tensor::empty(weight.shape());
  initialize(drawn, Init::xavier(), weight.shape()[1], weight.shape()[0], seed, name);
  std::ranges::copy(drawn.span<float>(), weight.data<double>());
}

Array featuresOf(const Batch& batch, std::int64_t inputs) {
  require(!batch.features.empty() && !batch.labels.empty(), "reference: the batch has no features or labels");
  const Tensor& features = batch.features.front().value;
  require(features.dtype() == DType::Float32 || features.dtype() == DType::Float64,
          "reference: features must be float32 or float64, got {}", features.toString());
  require(features.shape().rank() == 2 && features.shape()[1] == inputs,
          "reference: expected features [N, {}], got {}", inputs, features.toString());
  return toArray(features);
}

Array maskOf(const Batch& batch) {
  if (!batch.masks.empty()) return toArray(batch.masks.front().value);
  const std::int64_t examples = batch.examples();
  return Array({examples}, std::vector<double>(static_cast<std::size_t>(examples), 1));
}

}  // namespace

MultiLayerConfiguration networkOf(const ReferenceOptions& options) {
  const auto& training = options.training;
  return {.seed = options.seed,
          .updater = training.updater,
          .l1 = training.l1,
          .l2 = training.l2,
          .weightDecay = training.weightDecay,
          .clipNorm = training.clipNorm,
          .clipValue = training.clipValue,
          .inputShape = {options.inputs},
          .layers = {Dense{.units = options.hidden, .activation = Activation::Tanh},
                     Dropout{.rate = options.dropout}, Output{.classes = options.classes}}};
}

ReferenceModel::ReferenceModel(const ReferenceOptions& options, Context* context)
    : Model(options.training, context), options_(options) {
  const auto segments = segmentsOf(options_);
  const auto add = [&](std::string name, BlockKind kind, MergeRule rule) {
    blocks_.push_back(StateBlock::zeros(std::move(name), kind, rule, segments, DType::Float64));
  };
  add("parameters", BlockKind::Parameters, MergeRule::Average);
  add("gradients", BlockKind::Gradients, MergeRule::Keep);
  for (const auto* name : {"dense1.weight", "output.weight"}) draw(blocks_[0], name, options_.seed);
  updater_ = std::make_unique<ReferenceUpdater>(options_.training, blocks_[0]);
}

std::unique_ptr<Model> ReferenceModel::replicate(Context& context) const {
  return std::make_unique<ReferenceModel>(options_, &context);
}

ReferenceModel::Weights ReferenceModel::weightsOf(int layer) const {
  const auto segments = std::span(blocks_[0].segments->segments).subspan(2 * layer, 2);
  return {toArray(blocks_[0].segment(segments[0])), toArray(blocks_[0].segment(segments[1]))};
}

void ReferenceModel::setGradients(int layer, const std::pair<Array, Array>& weightAndBias) {
  const auto segments = std::span(blocks_[1].segments->segments).subspan(2 * layer, 2);
  std::ranges::copy(weightAndBias.first.values, blocks_[1].segment(segments[0]).data<double>());
  std::ranges::copy(weightAndBias.second.values, blocks_[1].segment(segments[1]).data<double>());
}

Array ReferenceModel::dropped(const Array& x, const BatchStamp& stamp) const {
  const RandomStream random(options_.seed, "dropout dropout1", stamp.epoch);
  const double threshold = std::floor(options_.dropout * 0x1p32);
  const std::int64_t indices = (options_.hidden + 3) / 4;  // random numbers per example
  return reference::dropout(x, options_.dropout, [&](std::int64_t n, std::int64_t e) {
    const auto index = static_cast<std::uint64_t>((stamp.firstExample + n) * indices + e / 4);
    return random.words(index)[static_cast<std::size_t>(e % 4)] >= threshold;
  });
}

StepTicket ReferenceModel::gradient(const Batch& batch) {
  const Array x = featuresOf(batch, options_.inputs), labels = toArray(batch.labels.front().value),
              mask = maskOf(batch);
  const double weight = std::accumulate(mask.values.begin(), mask.values.end(), 0.0);
  const Weights first = weightsOf(0), second = weightsOf(1);

  const Array sums = reference::dense(x, first.weight, first.bias);
  const Array hidden = dropped(reference::activation(Activation::Tanh, sums), batch.stamp);
  const Array logits = reference::dense(hidden, second.weight, second.bias);
  const Array losses = reference::losses(Loss::NegativeLogLikelihood, logits, labels);
  const double loss =
      std::inner_product(losses.values.begin(), losses.values.end(), mask.values.begin(), 0.0);

  const double normaliser = weight > 0 ? weight : 1;  // all masked: the gradient is 0
  const Array gradLogits =
      reference::lossGradient(Loss::NegativeLogLikelihood, logits, labels, mask, normaliser);
  setGradients(1, reference::denseBackwardWeights(hidden, gradLogits));
  const Array gradHidden = dropped(reference::denseBackwardData(gradLogits, second.weight), batch.stamp);
  const Array gradSums = reference::activationBackward(Activation::Tanh, sums, gradHidden);
  setGradients(0, reference::denseBackwardWeights(x, gradSums));
  return StepTicket({.score = loss / normaliser, .weight = weight});
}

double ReferenceModel::update(const BatchStamp& stamp) {
  return updater_->apply(blocks_[0], blocks_[1], stamp.iteration, stamp.epoch);
}

}  // namespace muster::test
