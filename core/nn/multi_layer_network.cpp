#include "muster/core/nn/multi_layer_network.h"

#include <algorithm>
#include <map>
#include <set>

#include "muster/core/base/error.h"
#include "muster/core/nn/detail/chain_program.h"
#include "muster/core/nn/detail/chain_state.h"
#include "muster/core/ops/detail/expect.h"
#include "muster/core/ops/reorder.h"

namespace muster {

TrainingOptions MultiLayerConfiguration::trainingOptions() const {
  return {.updater = updater,
          .l1 = l1,
          .l2 = l2,
          .weightDecay = weightDecay,
          .clipNorm = clipNorm,
          .clipValue = clipValue};
}

namespace {

/// Programs kept for batch sizes that come again; the least recently used makes room for a new one.
constexpr std::size_t kProgramCacheSize = 8;

/// "conv2d" gives "conv": names then read conv1, conv2, dense1, output.
std::string namePrefix(std::string_view type) {
  if (type.ends_with("2d")) type.remove_suffix(2);
  return std::string(type);
}

/// Names and shapes of a chain, a Flatten put where a layer wants one; no parameters yet.
std::vector<detail::ChainLayer> layOut(const MultiLayerConfiguration& configuration) {
  std::vector<detail::ChainLayer> chain;
  std::map<std::string, int> counts;
  std::set<std::string> names;
  Shape shape = configuration.inputShape;
  const auto append = [&](std::string name, std::shared_ptr<const Module> module) {
    require(names.insert(name).second, "network: two layers are called {}", name);
    try {
      const Shape output = module->outputShape(shape);
      chain.push_back(
          {.name = std::move(name), .module = std::move(module), .input = shape, .output = output});
      shape = output;
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(fmt::format("layer {} ({}): {}", chain.size(), name, error.what()));
    }
  };
  for (const auto& layer : configuration.layers) {
    std::shared_ptr<const Module> module(layer.module().clone());
    if (module->wantsFlatInput() && shape.rank() > 1)
      append(fmt::format("flatten{}", ++counts["flatten"]), std::make_shared<detail::ModuleOf<Flatten>>());
    std::string name(module->name());
    if (name.empty()) {
      const auto prefix = namePrefix(module->type());
      const int number = ++counts[prefix];
      name = module->lossHead() && number == 1 ? prefix : fmt::format("{}{}", prefix, number);
    }
    append(std::move(name), std::move(module));
  }
  return chain;
}

void validate(const MultiLayerConfiguration& configuration) {
  require(!configuration.layers.empty(), "network: it has no layers");
  for (std::size_t i = 0; i < configuration.layers.size(); ++i) {
    const auto& module = configuration.layers[i].module();
    try {
      module.validate();
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(fmt::format("layer {}: {}", i, error.what()));
    }
    const bool last = i + 1 == configuration.layers.size();
    require(last || !module.lossHead(), "network: an output must be the last layer, got one as layer {}", i);
  }
}

}  // namespace

struct MultiLayerNetwork::Impl {
  explicit Impl(MultiLayerConfiguration c) : configuration(std::move(c)) {}

  /// Shapes, blocks and the layers' views of them; values zero.
  void allocate();
  /// Values from the seed.
  void draw();
  detail::ChainProgram& program(std::int64_t batch, bool training, Context& context);
  void requireFit(const Tensor& features) const;
  /// None where the last layer is not an output.
  std::optional<LossHead> findHead() const { return configuration.layers.back().module().lossHead(); }
  /// @throws InvalidArgument where there is none.
  LossHead head() const;

  MultiLayerConfiguration configuration;
  std::vector<detail::ChainLayer> chain;  // empty until initialised
  std::vector<StateBlock> blocks;         // parameters, gradients, and statistics where there are any

  struct CachedProgram {
    std::int64_t batch;
    bool training;
    std::uint64_t lastUse;
    std::unique_ptr<detail::ChainProgram> program;
  };
  std::vector<CachedProgram> programs;
  std::uint64_t uses = 0;

  /// What `forward` ran last, as long as its activations are there for `backward`.
  detail::ChainProgram* forwardProgram = nullptr;
  StepInfo forwardInfo;
};

void MultiLayerNetwork::Impl::allocate() {
  auto made = layOut(configuration);
  blocks = detail::makeBlocks(made);
  chain = std::move(made);
}

void MultiLayerNetwork::Impl::draw() {
  const auto fill = [&](std::vector<ParameterSpec> specs, std::vector<Tensor>& tensors,
                        const std::string& layer) {
    for (std::size_t i = 0; i < specs.size(); ++i)
      initialize(tensors[i], specs[i].init, specs[i].fanIn, specs[i].fanOut, configuration.seed,
                 layer + "." + specs[i].name);
  };
  for (auto& layer : chain) {
    fill(layer.module->parameters(layer.input), layer.parameters, layer.name);
    fill(layer.module->statistics(layer.input), layer.statistics, layer.name);
  }
}

detail::ChainProgram& MultiLayerNetwork::Impl::program(std::int64_t batch, bool training, Context& context) {
  const auto wanted = [&](const CachedProgram& p) { return p.batch == batch && p.training == training; };
  auto found = std::ranges::find_if(programs, wanted);
  if (found == programs.end()) {
    if (programs.size() == kProgramCacheSize) {
      const auto oldest = std::ranges::min_element(programs, {}, &CachedProgram::lastUse);
      if (oldest->program.get() == forwardProgram) forwardProgram = nullptr;
      programs.erase(oldest);
    }
    programs.push_back(
        {batch, training, 0, std::make_unique<detail::ChainProgram>(chain, batch, training, context)});
    found = std::prev(programs.end());
  }
  if (found->program.get() == forwardProgram) forwardProgram = nullptr;  // it will hold another pass
  found->lastUse = ++uses;
  return *found->program;
}

LossHead MultiLayerNetwork::Impl::head() const {
  if (const auto found = findHead()) return *found;
  throw InvalidArgument(
      fmt::format("network: it has no loss, as its last layer is {}, not an output; run it by forward() and "
                  "backward()",
                  configuration.layers.back().module().type()));
}

void MultiLayerNetwork::Impl::requireFit(const Tensor& features) const {
  require(!chain.empty(), "network: call init() first, or give an input shape");
  if (features.shape().rank() >= 1 && features.shape()[0] > 0 &&
      features.shape().dropFirst() == configuration.inputShape)
    return;
  throw InvalidArgument(
      fmt::format("network: expected features {} with at least one example before it, got {}",
                  configuration.inputShape.toString(), features.toString()));
}

MultiLayerNetwork::MultiLayerNetwork(MultiLayerConfiguration configuration)
    : Model(configuration.trainingOptions()), impl_(std::make_unique<Impl>(std::move(configuration))) {
  validate(impl_->configuration);
  if (!impl_->configuration.inputShape.empty())
    layOut(impl_->configuration);  // shapes that do not fit fail here
}

MultiLayerNetwork::MultiLayerNetwork(MultiLayerConfiguration configuration, Context& context)
    : Model(configuration.trainingOptions(), &context),
      impl_(std::make_unique<Impl>(std::move(configuration))) {
  validate(impl_->configuration);
}

MultiLayerNetwork::~MultiLayerNetwork() = default;

void MultiLayerNetwork::init() {
  require(!impl_->configuration.inputShape.empty(),
          "network: init() needs the configuration's inputShape; without it the first batch decides");
  if (!initialized()) impl_->allocate();
  impl_->draw();
  for (auto& state : optimizer().state()) setZero(state.values, context());
  setCounters(0, 0);
}

bool MultiLayerNetwork::initialized() const {
  return !impl_->chain.empty();
}

const MultiLayerConfiguration& MultiLayerNetwork::configuration() const {
  return impl_->configuration;
}

void MultiLayerNetwork::prepare(const Batch& first) {
  if (initialized()) return;
  if (impl_->configuration.inputShape.empty()) {
    require(first.examples() > 0, "network: the first batch has no examples to take the input shape from");
    impl_->configuration.inputShape = first.features.front().value.shape().dropFirst();
  }
  init();
}

std::unique_ptr<MultiLayerNetwork> MultiLayerNetwork::clone() {
  require(initialized(), "network: clone() before init()");
  auto copy = std::make_unique<MultiLayerNetwork>(impl_->configuration);
  copy->impl_->allocate();
  copy->copyStateFrom(*this);
  return copy;
}

std::unique_ptr<Model> MultiLayerNetwork::replicate(Context& context) const {
  require(initialized(), "network: replicate() before init()");
  auto replica = std::make_unique<MultiLayerNetwork>(impl_->configuration, context);
  replica->impl_->allocate();
  return replica;
}

std::span<StateBlock> MultiLayerNetwork::blocks() {
  return impl_->blocks;
}

namespace {

const Tensor& firstOf(const std::vector<NamedTensor>& tensors, std::string_view what) {
  require(!tensors.empty(), "network: the batch has no {}", what);
  return tensors.front().value;
}

}  // namespace

StepTicket MultiLayerNetwork::gradient(const Batch& batch, const GradientReady& onReady) {
  const LossHead head = impl_->head();
  const Tensor& features = firstOf(batch.features, "features");
  const Tensor& labels = firstOf(batch.labels, "labels");
  impl_->requireFit(features);
  ContextScope scope(context());
  auto& program = impl_->program(features.shape()[0], true, context());
  const StepInfo info{.stamp = batch.stamp, .seed = impl_->configuration.seed, .training = true};
  const Tensor& predictions = program.forward(features, info);
  const LossValue value = loss(head.loss, predictions, labels, batch.lossMask(predictions.shape()),
                               program.outputGradient(), 0, context());
  program.backward(info, onReady);
  return StepTicket({.score = value.weight > 0 ? value.sum / value.weight : 0, .weight = value.weight});
}

void MultiLayerNetwork::output(const Batch& batch, Tensor& out) {
  const Tensor& features = firstOf(batch.features, "features");
  impl_->requireFit(features);
  ContextScope scope(context());
  auto& program = impl_->program(features.shape()[0], false, context());
  const Tensor& predictions =
      program.forward(features, {.stamp = batch.stamp, .seed = impl_->configuration.seed, .training = false});
  if (!out.defined() || out.shape() != predictions.shape() || out.dtype() != DType::Float32)
    out = Tensor::empty(predictions.shape());
  const auto head = impl_->findHead();
  if (!head || head->loss == Loss::MeanSquaredError)
    copy(predictions, out, context());
  else
    activationForward(head->activation, predictions, out, context());
}

void MultiLayerNetwork::forward(const Tensor& input, Tensor& output, const ForwardPass& pass) {
  impl_->requireFit(input);
  ContextScope scope(context());
  // The activations are kept in evaluation, too: a backward pass may follow.
  auto& program = impl_->program(input.shape()[0], true, context());
  const StepInfo info{.stamp = {.epoch = pass.call, .firstExample = pass.firstExample},
                      .seed = impl_->configuration.seed,
                      .training = pass.training};
  const Tensor& result = program.forward(input, info);
  output.resize(result.shape(), DType::Float32);
  copy(result, output, context());
  impl_->forwardProgram = &program;
  impl_->forwardInfo = info;
}

void MultiLayerNetwork::backward(const Tensor& gradOutput, Tensor* gradInput) {
  require(impl_->forwardProgram != nullptr,
          "network: backward() needs the activations of a forward() before it, and no step, gradient or many "
          "other batch sizes since");
  auto& program = *impl_->forwardProgram;
  ContextScope scope(context());
  detail::expectLike("network", "gradOutput", gradOutput, program.outputGradient());
  copy(gradOutput, program.outputGradient(), context());
  program.backward(impl_->forwardInfo, {}, gradInput != nullptr);
  if (!gradInput) return;
  gradInput->resize(program.inputGradient().shape(), DType::Float32);
  reorder(program.inputGradient(), *gradInput, context());
}

Tensor MultiLayerNetwork::output(const Tensor& features) {
  Batch batch;
  batch.features.push_back({"features", features});
  Tensor out;
  output(batch, out);
  return out;
}

double MultiLayerNetwork::score(const Batch& batch) {
  const LossHead head = impl_->head();
  const Tensor& features = firstOf(batch.features, "features");
  impl_->requireFit(features);
  ContextScope scope(context());
  auto& program = impl_->program(features.shape()[0], false, context());
  const Tensor& predictions =
      program.forward(features, {.stamp = batch.stamp, .seed = impl_->configuration.seed, .training = false});
  Tensor none;
  const LossValue value = loss(head.loss, predictions, firstOf(batch.labels, "labels"),
                               batch.lossMask(predictions.shape()), none, 0, context());
  return value.weight > 0 ? value.sum / value.weight : 0;
}

std::string MultiLayerNetwork::summary() const {
  const auto chain = impl_->configuration.inputShape.empty() ? std::vector<detail::ChainLayer>{}
                                                             : layOut(impl_->configuration);
  std::string text =
      fmt::format("{:<14} {:<14} {:<18} {:>12}\n", "layer", "type", "output shape", "parameters");
  const std::string rule(text.size() - 1, '-');
  text += rule + "\n";
  std::int64_t total = 0;
  if (chain.empty())
    for (const auto& layer : impl_->configuration.layers)
      text += fmt::format("{:<14} {:<14} {:<18} {:>12}\n", layer.module().name(), layer.module().type(), "?",
                          "?");
  for (const auto& layer : chain) {
    std::int64_t count = 0;
    for (const auto& spec : layer.module->parameters(layer.input)) count += spec.shape.elements();
    total += count;
    text += fmt::format("{:<14} {:<14} {:<18} {:>12}\n", layer.name, layer.module->type(),
                        layer.output.toString(), count);
  }
  return text + rule +
         fmt::format("\n{:<14} {:<14} {:<18} {:>12}\n", "total", "", "",
                     chain.empty() ? "?" : std::to_string(total));
}

}  // namespace muster
