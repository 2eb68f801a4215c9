#include "muster/core/nn/network.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "muster/core/base/error.h"
#include "muster/core/nn/detail/network_program.h"
#include "muster/core/nn/detail/network_state.h"
#include "muster/core/ops/detail/expect.h"
#include "muster/core/ops/elementwise.h"
#include "muster/core/ops/reorder.h"

namespace muster {

using detail::NetworkOutput;
using detail::NetworkProgram;

namespace {

/// Programs kept for batch sizes that come again; the least recently used makes room for a new one.
constexpr std::size_t kProgramCacheSize = 8;

/// The first of a batch's features or labels where the network has one place for them, else that of the
/// place's name.
const Tensor& tensorFor(const std::vector<NamedTensor>& tensors, std::string_view what, std::string_view name,
                        bool only) {
  require(!tensors.empty(), "network: the batch has no {}", what);
  if (only) return tensors.front().value;
  const auto found = std::ranges::find(tensors, name, &NamedTensor::name);
  if (found != tensors.end()) return found->value;
  std::vector<std::string> names;
  for (const auto& tensor : tensors) names.push_back(tensor.name);
  throw InvalidArgument(
      fmt::format("network: the batch has no {} called {}; it has {}", what, name, fmt::join(names, ", ")));
}

/// @param name  of the parameter in the network.
void drawParameter(Tensor& values, const ParameterSpec& spec, std::uint64_t seed, const std::string& name) {
  if (spec.parts.empty()) return initialize(values, spec.init, spec.fanIn, spec.fanOut, seed, name);
  const auto parts = static_cast<std::int64_t>(spec.parts.size());
  require(spec.shape.rank() > 0 && spec.shape[0] % parts == 0,
          "network: {} {} cannot start in {} equal parts", name, spec.shape.toString(), parts);
  const std::int64_t size = spec.shape.elements() / parts;
  for (std::int64_t part = 0; part < parts; ++part) {
    Tensor view = values.slice(part * size, {size});
    initialize(view, spec.parts[static_cast<std::size_t>(part)], spec.fanIn, spec.fanOut, seed,
               fmt::format("{}[{}]", name, part));
  }
}

}  // namespace

struct Network::Impl {
  explicit Impl(std::uint64_t s) : seed(s) {}

  /// Values from the seed.
  void draw();
  NetworkProgram& program(std::int64_t batch, bool training, Context& context);
  /// Runs a batch through. @return the program that holds what came out.
  NetworkProgram& run(const Batch& batch, bool training, Context& context);
  StepInfo infoOf(const Batch& batch, bool training) const;
  /// The features of each input, checked, in `features`.
  void find(const Batch& batch);
  void requireKnownMasks(const Batch& batch) const;
  void requireFit(std::size_t input, const Tensor& value) const;
  const Tensor& labelsOf(const Batch& batch, const NetworkOutput& output) const;
  Tensor maskOf(const Batch& batch, const NetworkOutput& output) const;
  /// What `call` gives; its errors name the output where there are several.
  template <typename Call>
  LossValue naming(const NetworkOutput& output, Call&& call) const;
  void requireLoss() const;
  void requireSingle(std::string_view function) const;
  /// The score of what `program` holds, and, where asked for, its derivatives.
  StepScore losses(NetworkProgram& program, const Batch& batch, bool derivatives, Context& context) const;
  /// What output `index` predicts.
  void predict(const NetworkProgram& program, std::size_t index, Tensor& out, Context& context) const;

  std::uint64_t seed;
  detail::NetworkPlan plan;             // empty until initialised
  std::vector<StateBlock> blocks;       // parameters, gradients, and statistics where there are any
  std::vector<const Tensor*> features;  // [input] of the batch at hand

  struct CachedProgram {
    std::int64_t batch;
    bool training;
    std::uint64_t lastUse;
    std::unique_ptr<NetworkProgram> program;
  };
  std::vector<CachedProgram> programs;
  std::uint64_t uses = 0;

  /// What `forward` ran last, as long as its activations are there for `backward`.
  NetworkProgram* forwardProgram = nullptr;
  StepInfo forwardInfo;
};

void Network::Impl::draw() {
  const auto fill = [&](const std::vector<ParameterSpec>& specs, std::vector<Tensor>& tensors,
                        const std::string& node) {
    for (std::size_t i = 0; i < specs.size(); ++i)
      drawParameter(tensors[i], specs[i], seed, node + "." + specs[i].name);
  };
  for (auto& node : plan.nodes) {
    fill(node.module->parameters(node.inputShapes), node.parameters, node.name);
    fill(node.module->statistics(node.inputShapes), node.statistics, node.name);
  }
}

NetworkProgram& Network::Impl::program(std::int64_t batch, bool training, Context& context) {
  const auto wanted = [&](const CachedProgram& p) { return p.batch == batch && p.training == training; };
  auto found = std::ranges::find_if(programs, wanted);
  if (found == programs.end()) {
    if (programs.size() == kProgramCacheSize) {
      const auto oldest = std::ranges::min_element(programs, {}, &CachedProgram::lastUse);
      if (oldest->program.get() == forwardProgram) forwardProgram = nullptr;
      programs.erase(oldest);
    }
    programs.push_back(
        {batch, training, 0, std::make_unique<NetworkProgram>(plan, batch, training, context)});
    found = std::prev(programs.end());
  }
  if (found->program.get() == forwardProgram) forwardProgram = nullptr;  // it will hold another pass
  found->lastUse = ++uses;
  return *found->program;
}

void Network::Impl::requireFit(std::size_t input, const Tensor& value) const {
  const auto& [name, shape, indices] = plan.inputs[input];
  if (value.shape().rank() >= 1 && value.shape()[0] > 0 && value.shape().dropFirst() == shape) return;
  throw InvalidArgument(fmt::format("network: expected {} {} with at least one example before it, got {}",
                                    name, shape.toString(), value.toString()));
}

void Network::Impl::find(const Batch& batch) {
  require(!plan.empty(), "network: call init() first, or give an input shape");
  features.resize(plan.inputs.size());
  for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
    features[i] = &tensorFor(batch.features, "features", plan.inputs[i].name, plan.inputs.size() == 1);
    requireFit(i, *features[i]);
    require(features[i]->shape()[0] == features[0]->shape()[0],
            "network: the batch has {} examples of {}, but {} of {}", features[i]->shape()[0],
            plan.inputs[i].name, features[0]->shape()[0], plan.inputs[0].name);
  }
  requireKnownMasks(batch);
}

/// With one output a mask may have any name; with several one that nobody asks for is a mistake.
void Network::Impl::requireKnownMasks(const Batch& batch) const {
  if (plan.outputs.size() == 1) return;
  for (const auto& mask : batch.masks) {
    const bool isKnown =
        mask.name == "features" ||
        std::ranges::find(plan.outputs, mask.name, &NetworkOutput::name) != plan.outputs.end();
    if (isKnown) continue;
    std::vector<std::string> names{"features"};
    for (const auto& output : plan.outputs) names.push_back(output.name);
    throw InvalidArgument(
        fmt::format("network: the batch has a mask called {}; the masks that are read are {}", mask.name,
                    fmt::join(names, ", ")));
  }
}

StepInfo Network::Impl::infoOf(const Batch& batch, bool training) const {
  return {.stamp = batch.stamp, .seed = seed, .training = training, .sequenceMask = batch.sequenceMask()};
}

NetworkProgram& Network::Impl::run(const Batch& batch, bool training, Context& context) {
  find(batch);
  auto& made = program(features.front()->shape()[0], training, context);
  made.forward(features, infoOf(batch, training));
  return made;
}

void Network::Impl::requireLoss() const {
  require(!plan.empty(), "network: call init() first, or give an input shape");
  for (const auto& output : plan.outputs)
    if (!output.head)
      throw InvalidArgument(fmt::format(
          "network: it has no loss, as {} is {}, not an output; run it by forward() and backward()",
          plan.outputs.size() == 1 ? "its last layer" : output.name,
          plan.nodes[output.value - plan.inputs.size()].module->type()));
}

void Network::Impl::requireSingle(std::string_view function) const {
  require(!plan.empty(), "network: call init() first, or give an input shape");
  require(plan.inputs.size() == 1 && plan.outputs.size() == 1,
          "network: {} is for networks with one input and one output, this one has {} and {}", function,
          plan.inputs.size(), plan.outputs.size());
}

const Tensor& Network::Impl::labelsOf(const Batch& batch, const NetworkOutput& output) const {
  return tensorFor(batch.labels, "labels", output.name, plan.outputs.size() == 1);
}

Tensor Network::Impl::maskOf(const Batch& batch, const NetworkOutput& output) const {
  return batch.lossMask(plan.shapeOf(output.value).prepend(1),
                        plan.outputs.size() == 1 ? std::string_view() : output.name);
}

template <typename Call>
LossValue Network::Impl::naming(const NetworkOutput& output, Call&& call) const {
  try {
    return call();
  } catch (const InvalidArgument& error) {
    if (plan.outputs.size() == 1) throw;
    throw InvalidArgument(fmt::format("network: output {}: {}", output.name, error.what()));
  }
}

StepScore Network::Impl::losses(NetworkProgram& program, const Batch& batch, bool derivatives,
                                Context& context) const {
  StepScore total;
  Tensor none;
  for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
    const auto& output = plan.outputs[i];
    Tensor& gradient = derivatives ? program.outputGradient(i) : none;
    const Tensor& labels = labelsOf(batch, output);
    const LossValue value = naming(output, [&] {
      return loss(output.head->loss, program.output(i), labels, maskOf(batch, output), gradient, 0, context);
    });
    if (derivatives && output.weight != 1) scale(output.weight, gradient, gradient, context);
    if (value.weight > 0) total.score += output.weight * value.sum / value.weight;
    total.weight = std::max(total.weight, value.weight);
  }
  return total;
}

void Network::Impl::predict(const NetworkProgram& program, std::size_t index, Tensor& out,
                            Context& context) const {
  const Tensor& predictions = program.output(index);
  out.resize(predictions.shape(), DType::Float32);
  const auto& head = plan.outputs[index].head;
  if (!head || head->loss == Loss::MeanSquaredError) return copy(predictions, out, context);
  // Of a sequence every time step is a row.
  const Shape rows{predictions.elements() / predictions.shape()[-1], predictions.shape()[-1]};
  Tensor flat = out.reshape(rows);
  activationForward(head->activation, predictions.reshape(rows), flat, context);
}

Network::Network(const TrainingOptions& options, std::uint64_t seed, Context* context)
    : Model(options, context), impl_(std::make_unique<Impl>(seed)) {}

Network::~Network() = default;

void Network::init() {
  for (const auto& input : inputs())
    require(!input.shape.empty(),
            "network: init() needs an inputShape for {}; without it the first batch decides", input.name);
  if (!initialized()) {
    detail::NetworkPlan plan = layOut();
    impl_->blocks = detail::makeBlocks(plan);
    impl_->plan = std::move(plan);
  }
  impl_->draw();
  for (auto& state : optimizer().state()) setZero(state.values, context());
  setCounters(0, 0);
}

bool Network::initialized() const {
  return !impl_->plan.empty();
}

void Network::prepare(const Batch& first) {
  if (initialized()) return;
  std::vector<Shape> shapes, openShapes;
  const auto open = inputs();
  for (const auto& input : open) {
    openShapes.push_back(input.shape);
    shapes.push_back(input.shape);
    if (!input.shape.empty()) continue;
    const Tensor& value = tensorFor(first.features, "features", input.name, open.size() == 1);
    require(value.shape().rank() > 1,
            "network: the first batch gives the shape of {}, and has to be [N, ...], got {}", input.name,
            value.toString());
    require(value.shape()[0] > 0,
            "network: the first batch has no examples to take the shape of {} from, it is {}", input.name,
            value.toString());
    shapes.back() = value.shape().dropFirst();
  }
  setInputShapes(shapes);
  try {
    init();
  } catch (...) {  // shapes that do not fit are forgotten: the next batch may bring better ones
    if (!initialized()) setInputShapes(openShapes);
    throw;
  }
}

std::unique_ptr<Network> Network::cloneNetwork() {
  require(initialized(), "network: clone() before init()");
  auto copy = make(nullptr);
  copy->init();
  copy->copyStateFrom(*this);
  return copy;
}

std::unique_ptr<Model> Network::replicate(Context& context) const {
  require(initialized(), "network: replicate() before init()");
  auto replica = make(&context);
  replica->impl_->plan = replica->layOut();
  replica->impl_->blocks = detail::makeBlocks(replica->impl_->plan);
  return replica;
}

std::span<StateBlock> Network::blocks() {
  return impl_->blocks;
}

StepTicket Network::gradient(const Batch& batch, const GradientReady& onReady) {
  impl_->requireLoss();
  ContextScope scope(context());
  auto& program = impl_->run(batch, true, context());
  const StepScore score = impl_->losses(program, batch, true, context());
  StepInfo info = impl_->infoOf(batch, true);
  info.lossWeight = score.weight;
  program.backward(info, onReady);
  return StepTicket(score);
}

double Network::score(const Batch& batch) {
  impl_->requireLoss();
  ContextScope scope(context());
  auto& program = impl_->run(batch, false, context());
  return impl_->losses(program, batch, false, context()).score;
}

void Network::output(const Batch& batch, Tensor& out) {
  ContextScope scope(context());
  const auto& program = impl_->run(batch, false, context());
  impl_->predict(program, 0, out, context());
}

std::string_view Network::outputName() const {
  const auto& outputs = impl_->plan.outputs;
  return outputs.size() > 1 ? std::string_view(outputs.front().name) : std::string_view();
}

std::vector<Tensor> Network::outputs(const Batch& batch) {
  ContextScope scope(context());
  const auto& program = impl_->run(batch, false, context());
  std::vector<Tensor> all(impl_->plan.outputs.size());
  for (std::size_t i = 0; i < all.size(); ++i) impl_->predict(program, i, all[i], context());
  return all;
}

Tensor Network::output(const Tensor& features) {
  Batch batch;
  batch.features.push_back({"features", features});
  Tensor out;
  output(batch, out);
  return out;
}

void Network::forward(const Tensor& input, Tensor& output, const ForwardPass& pass) {
  impl_->requireSingle("forward()");
  impl_->requireFit(0, input);
  ContextScope scope(context());
  // The activations are kept in evaluation, too: a backward pass may follow.
  auto& program = impl_->program(input.shape()[0], true, context());
  const StepInfo info{.stamp = {.epoch = pass.call, .firstExample = pass.firstExample},
                      .seed = impl_->seed,
                      .training = pass.training};
  const Tensor* inputs[] = {&input};
  program.forward(inputs, info);
  const Tensor& result = program.output(0);
  output.resize(result.shape(), DType::Float32);
  copy(result, output, context());
  impl_->forwardProgram = &program;
  impl_->forwardInfo = info;
}

void Network::backward(const Tensor& gradOutput, Tensor* gradInput) {
  require(impl_->forwardProgram != nullptr,
          "network: backward() needs the activations of a forward() before it, and no step, gradient or many "
          "other batch sizes since");
  auto& program = *impl_->forwardProgram;
  ContextScope scope(context());
  detail::expectLike("network", "gradOutput", gradOutput, program.outputGradient(0));
  require(gradInput == nullptr || !impl_->plan.inputs.front().indices,
          "network: there is no gradient by {}, which holds indices", impl_->plan.inputs.front().name);
  copy(gradOutput, program.outputGradient(0), context());
  // The gradient is that of one loss; of parts of an input (DataParallel) all are of the same one.
  impl_->forwardInfo.lossWeight = 1;
  program.backward(impl_->forwardInfo, {}, gradInput != nullptr);
  if (!gradInput) return;
  gradInput->resize(program.inputGradient(0).shape(), DType::Float32);
  reorder(program.inputGradient(0), *gradInput, context());
}

std::size_t Network::activationBytes() const {
  std::size_t bytes = 0;
  for (const auto& cached : impl_->programs) bytes += cached.program->bytes();
  return bytes;
}

}  // namespace muster
