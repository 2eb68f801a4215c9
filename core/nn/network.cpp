#include "muster/core/nn/network.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <type_traits>

#include "muster/core/base/error.h"
#include "muster/core/nn/detail/network_program.h"
#include "muster/core/nn/detail/network_state.h"
#include "muster/core/nn/detail/score_ring.h"
#include "muster/core/nn/detail/step_runner.h"
#include "muster/core/ops/detail/expect.h"
#include "muster/core/ops/elementwise.h"
#include "muster/core/ops/reorder.h"

namespace muster {

using detail::NetworkInput;
using detail::NetworkOutput;
using detail::NetworkProgram;
using detail::StepLane;
using detail::StepRunner;
using detail::StepWork;

namespace {

/// Programs kept for batch sizes that come again; the least recently used makes room for a new one.
constexpr std::size_t kProgramCacheSize = 8;
/// Forms of batches kept for each of them, likewise: other masks or element types.
constexpr std::size_t kFormCacheSize = 4;

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

/// The name of one of these tensors.
std::string_view nameAmong(const std::vector<NamedTensor>& tensors, const Tensor& tensor) {
  for (const auto& other : tensors)
    if (other.value.raw() == tensor.raw()) return other.name;
  return {};
}

/// What to do where all that does not fit is the length of a sequence.
std::string lengthAdvice(const NetworkInput& input, const Shape& value) {
  if (input.shape.rank() != (input.indices ? 1 : 2) || value.rank() != input.shape.rank() + 1) return {};
  const Shape example = value.dropFirst();
  if (example.dropFirst() != input.shape.dropFirst() || example[0] == input.shape[0]) return {};
  return fmt::format("; a network's sequences keep their length: {} {} steps and mask the padding",
                     example[0] < input.shape[0] ? "pad to" : "cut or pad to", input.shape[0]);
}

/// A name that can only have been meant for the mask of time steps.
bool resemblesFeatures(std::string_view name) {
  constexpr std::string_view kBegin = "feature";
  return name.size() >= kBegin.size() &&
         std::ranges::equal(name.substr(0, kBegin.size()), kBegin, {}, [](char c) {
           return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
         });
}

/// @param values  on the CPU.  @param name  of the parameter in the network.
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

struct Network::Impl final : PendingScores {
  Impl(Network& n, std::uint64_t s) : network(n), seed(s), enqueuesSteps(!n.context().device().isCpu()) {}

  /// Values from the seed.
  void draw();
  struct CachedProgram;
  CachedProgram& cached(std::int64_t batch, bool training, Context& context);
  NetworkProgram& program(std::int64_t batch, bool training, Context& context);
  /// The steps of a program with batches like this one.
  StepRunner& runner(CachedProgram& owner, const Batch& batch, Context& context);
  /// Runs a batch through. @return the program that holds what came out.
  NetworkProgram& run(const Batch& batch, bool training, Context& context);
  StepInfo infoOf(const Batch& batch, bool training) const;
  /// The features of each input, checked, in `features`.
  void find(const Batch& batch);
  void requireKnownMasks(const Batch& batch) const;
  void requireOneLossMask(const std::vector<NamedTensor>& masks) const;
  void requireFit(std::size_t input, const Tensor& value) const;
  /// What the loss of an output reads, which fits its predictions.
  const Tensor& labelsOf(const Batch& batch, const NetworkOutput& output, const Shape& predictions) const;
  Tensor maskOf(const Batch& batch, const NetworkOutput& output, const Shape& predictions) const;
  /// What `call` gives; its errors name the output where there are several.
  template <typename Call>
  std::invoke_result_t<Call> naming(const NetworkOutput& output, Call&& call) const;
  void requireLoss() const;
  void requireSingle(std::string_view function) const;
  /// The score of what `program` holds, and, where asked for, its derivatives.
  StepScore losses(NetworkProgram& program, const Batch& batch, bool derivatives, Context& context) const;
  /// Adds the loss of output `index` to a step's.
  void addLoss(StepScore& total, const LossValue& value, std::size_t index) const;

  /// Of a batch that, as far as it is known, fits.
  std::int64_t examplesOf(const Batch& batch);
  /// `batch` where the network computes, with all its numbers.
  const Batch& there(const Batch& batch, Context& context);
  /// Sends a training step on its way.
  StepTicket enqueue(const Batch& batch, StepWork work, const GradientReady& onReady, Context& context);
  /// Everything of a step from its numbers to its results, enqueued.
  void enqueueStep(NetworkProgram& program, StepLane& lane, StepWork work, const GradientReady& onReady,
                   Context& context);
  /// Likewise the losses of what `program` holds, and, where asked for, their derivatives.
  void enqueueLosses(NetworkProgram& program, StepLane& lane, bool derivatives, Context& context) const;
  /// What a lane's step came to. @throws InvalidArgument for a label out of range.
  StepScore scoreOf(const NetworkProgram& program, const StepLane& lane) const;
  void settle(std::uint64_t number, const NetworkProgram& program, const StepLane& lane, StepWork work);
  bool ready(std::uint64_t number) override;
  StepScore wait(std::uint64_t number) override;
  /// Waits for all steps that are under way.
  void finish();

  /// What output `index` predicts.
  void predict(const NetworkProgram& program, std::size_t index, Tensor& out, Context& context);
  /// Where the network computes a tensor that `out`, on the CPU, is to hold: there itself where it can.
  Tensor& resultLike(Tensor& out, Context& context);
  /// Copies what was computed to the CPU, unless it is there, and waits for it.
  static void bring(const Tensor& from, Tensor& out, Context& context);
  /// `input` where the network computes.
  const Tensor& give(const Tensor& input, Context& context);

  Network& network;
  std::uint64_t seed;
  bool enqueuesSteps;
  detail::ScoreRing scores;             // of steps that were enqueued
  detail::NetworkPlan plan;             // empty until initialised
  std::vector<StateBlock> blocks;       // parameters, gradients, and statistics where there are any
  std::vector<const Tensor*> features;  // [input] of the batch at hand

  struct CachedProgram {
    std::int64_t batch;
    bool training;
    std::uint64_t lastUse;
    std::unique_ptr<NetworkProgram> program;
    // The most recently used last. Before the program: their recordings hold its addresses.
    std::vector<std::unique_ptr<StepRunner>> runners = {};
  };
  std::vector<CachedProgram> programs;
  std::uint64_t uses = 0;

  /// What `forward` ran last, as long as its activations are there for `backward`.
  NetworkProgram* forwardProgram = nullptr;
  StepInfo forwardInfo;
  /// On a GPU what `forward` was given, and what output and input gradient are copied from.
  Tensor given, result;
  Batch gathered;  // on the CPU, of a batch that names rows
};

void Network::Impl::draw() {
  const auto fill = [&](const std::vector<ParameterSpec>& specs, std::vector<Tensor>& tensors,
                        const std::string& node) {
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const bool here = tensors[i].device().isCpu();
      Tensor values = here ? tensors[i] : Tensor::empty(tensors[i].shape());
      drawParameter(values, specs[i], seed, node + "." + specs[i].name);
      if (!here) copy(values, tensors[i]);
    }
  };
  for (auto& node : plan.nodes) {
    fill(node.module->parameters(node.inputShapes), node.parameters, node.name);
    fill(node.module->statistics(node.inputShapes), node.statistics, node.name);
  }
}

NetworkProgram& Network::Impl::program(std::int64_t batch, bool training, Context& context) {
  return *cached(batch, training, context).program;
}

Network::Impl::CachedProgram& Network::Impl::cached(std::int64_t batch, bool training, Context& context) {
  const auto wanted = [&](const CachedProgram& p) { return p.batch == batch && p.training == training; };
  auto found = std::ranges::find_if(programs, wanted);
  if (found == programs.end()) {
    if (programs.size() == kProgramCacheSize) {
      const auto oldest = std::ranges::min_element(programs, {}, &CachedProgram::lastUse);
      if (oldest->program.get() == forwardProgram) forwardProgram = nullptr;
      for (auto& steps : oldest->runners) steps->finish();
      oldest->runners.clear();  // before the program, which erasing would move away first
      programs.erase(oldest);
    }
    programs.push_back({.batch = batch,
                        .training = training,
                        .lastUse = 0,
                        .program = std::make_unique<NetworkProgram>(plan, batch, training, context)});
    found = std::prev(programs.end());
  }
  if (found->program.get() == forwardProgram) forwardProgram = nullptr;  // it will hold another pass
  found->lastUse = ++uses;
  return *found;
}

StepRunner& Network::Impl::runner(CachedProgram& owner, const Batch& batch, Context& context) {
  auto& runners = owner.runners;
  const auto found = std::ranges::find_if(runners, [&](const auto& steps) { return steps->fits(batch); });
  if (found != runners.end()) {
    std::rotate(found, std::next(found), runners.end());
    return *runners.back();
  }
  if (runners.size() == kFormCacheSize) {
    runners.front()->finish();
    runners.erase(runners.begin());
  }
  NetworkProgram& made = *owner.program;
  runners.push_back(std::make_unique<StepRunner>(
      batch, plan.outputs.size(), made.recordable(),
      [this, &made, &context](StepLane& lane, StepWork work) { enqueueStep(made, lane, work, {}, context); },
      [this, &made](std::uint64_t number, const StepLane& lane, StepWork work) {
        settle(number, made, lane, work);
      },
      context));
  return *runners.back();
}

void Network::Impl::requireFit(std::size_t input, const Tensor& value) const {
  const auto& [name, shape, indices] = plan.inputs[input];
  if (value.shape().rank() >= 1 && value.shape()[0] > 0 && value.shape().dropFirst() == shape) return;
  throw InvalidArgument(fmt::format("network: expected {} {} with at least one example before it, got {}{}",
                                    name, shape.toString(), value.toString(),
                                    lengthAdvice(plan.inputs[input], value.shape())));
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

/// With one output its mask may have nearly any name; a mask that nobody asks for is a mistake.
void Network::Impl::requireKnownMasks(const Batch& batch) const {
  batch.requireMaskValues();
  if (plan.outputs.size() == 1) return requireOneLossMask(batch.masks);
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

void Network::Impl::requireOneLossMask(const std::vector<NamedTensor>& masks) const {
  const NamedTensor* found = nullptr;
  for (const auto& mask : masks) {
    if (mask.name == "features") continue;
    if (resemblesFeatures(mask.name) && mask.name != plan.outputs.front().name)
      throw InvalidArgument(fmt::format(
          "network: the batch has a mask called {}; the one of time steps is called features", mask.name));
    if (found != nullptr)
      throw InvalidArgument(
          fmt::format("network: the batch has masks called {} and {}; beside features one is read",
                      found->name, mask.name));
    found = &mask;
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

std::int64_t Network::Impl::examplesOf(const Batch& batch) {
  require(!plan.empty(), "network: call init() first, or give an input shape");
  if (batch.namesRows())
    batch.requireMaskValues();  // on a GPU nobody reads them
  else
    find(batch);
  require(batch.examples() > 0, "network: the batch has no examples");
  return batch.examples();
}

const Batch& Network::Impl::there(const Batch& batch, Context& context) {
  if (context.device().isCpu()) {
    if (!batch.namesRows()) return batch;
    batch.gatherInto(gathered);
    return gathered;
  }
  auto& owner = cached(examplesOf(batch), false, context);
  StepLane& lane = runner(owner, batch, context).begin(batch);
  lane.fetch();
  return lane.batch();
}

StepTicket Network::Impl::enqueue(const Batch& batch, StepWork work, const GradientReady& onReady,
                                  Context& context) {
  auto& owner = cached(examplesOf(batch), true, context);
  StepRunner& steps = runner(owner, batch, context);
  StepLane& lane = steps.begin(batch);
  if (work == StepWork::Update) {
    auto& optimizer = network.optimizer();
    optimizer.plan(network.block(BlockKind::Parameters), context);
    optimizer.writeNumbers(batch.stamp.iteration, batch.stamp.epoch, lane.hostUpdateNumbers());
  }
  const std::uint64_t number = scores.nextNumber();
  if (onReady)
    steps.run(number, work,
              [&](StepLane& l, StepWork w) { enqueueStep(*owner.program, l, w, onReady, context); });
  else
    steps.run(number, work);
  return {*this, number};
}

void Network::Impl::enqueueStep(NetworkProgram& program, StepLane& lane, StepWork work,
                                const GradientReady& onReady, Context& context) {
  lane.fetch();
  find(lane.batch());
  StepInfo info = infoOf(lane.batch(), true);
  if (program.recordable()) info.position = &lane.position();
  program.forward(features, info);
  enqueueLosses(program, lane, true, context);
  if (!program.recordable()) {
    lane.fetchResults();
    context.synchronize();
    info.lossWeight = scoreOf(program, lane).weight;
  }
  program.backward(info, onReady);
  if (work == StepWork::Update)
    network.optimizer().enqueue(network.block(BlockKind::Parameters), network.block(BlockKind::Gradients),
                                lane.updateNumbers(), lane.penalty(), lane.losses());
  lane.fetchResults();
}

void Network::Impl::enqueueLosses(NetworkProgram& program, StepLane& lane, bool derivatives,
                                  Context& context) const {
  Tensor none;
  for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
    const auto& output = plan.outputs[i];
    Tensor& gradient = derivatives ? program.outputGradient(i) : none;
    const Shape& predictions = program.output(i).shape();
    const Tensor& labels = labelsOf(lane.batch(), output, predictions);
    const Tensor mask = maskOf(lane.batch(), output, predictions);
    naming(output, [&] {
      lossInto(output.head->loss, program.output(i), labels, mask, gradient, {}, lane.lossNumbers(i),
               context);
    });
    if (derivatives && output.weight != 1) scale(output.weight, gradient, gradient, context);
  }
}

StepScore Network::Impl::scoreOf(const NetworkProgram& program, const StepLane& lane) const {
  StepScore total;
  for (std::size_t i = 0; i < plan.outputs.size(); ++i)
    addLoss(total,
            naming(plan.outputs[i], [&] { return lossValue(lane.hostLoss(i), program.output(i).shape()); }),
            i);
  return total;
}

void Network::Impl::addLoss(StepScore& total, const LossValue& value, std::size_t index) const {
  if (value.weight != 0) total.score += plan.outputs[index].weight * value.sum / value.weight;
  total.weight = std::max(total.weight, value.weight);
}

void Network::Impl::settle(std::uint64_t number, const NetworkProgram& program, const StepLane& lane,
                           StepWork work) {
  try {
    StepScore score = scoreOf(program, lane);
    if (work == StepWork::Update) score.score += lane.hostPenalty();
    scores.put(number, score);
  } catch (...) {
    scores.put(number, std::current_exception());
  }
}

bool Network::Impl::ready(std::uint64_t number) {
  return std::ranges::all_of(programs, [&](const CachedProgram& p) {
    return std::ranges::all_of(p.runners, [&](const auto& steps) { return steps->complete(number); });
  });
}

StepScore Network::Impl::wait(std::uint64_t number) {
  for (auto& p : programs)
    for (auto& steps : p.runners) steps->finish(number);
  return scores.get(number);
}

void Network::Impl::finish() {
  for (auto& p : programs)
    for (auto& steps : p.runners) steps->finish();
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

const Tensor& Network::Impl::labelsOf(const Batch& batch, const NetworkOutput& output,
                                      const Shape& predictions) const {
  const Tensor& labels = tensorFor(batch.labels, "labels", output.name, plan.outputs.size() == 1);
  const bool takesClasses = output.head->loss == Loss::NegativeLogLikelihood;
  if (labels.dtype() == DType::Float32 && labels.shape() == predictions) return labels;
  if (takesClasses && labels.dtype() == DType::Int64 && labels.shape() == predictions.dropLast())
    return labels;
  throw InvalidArgument(fmt::format(
      "network: output {} takes {}float32 {}, but its labels, called {}, are {}", output.name,
      takesClasses ? fmt::format("classes int64 {} or ", predictions.dropLast().toString()) : std::string(),
      predictions.toString(), nameAmong(batch.labels, labels), labels.toString()));
}

Tensor Network::Impl::maskOf(const Batch& batch, const NetworkOutput& output,
                             const Shape& predictions) const {
  Tensor mask = batch.lossMask(predictions, plan.outputs.size() == 1 ? std::string_view() : output.name);
  const Shape rows = predictions.dropLast();
  if (!mask.defined() || (mask.dtype() == DType::Float32 && mask.shape() == rows)) return mask;
  throw InvalidArgument(fmt::format(
      "network: output {} takes a mask float32 {}, a weight for each {}, but its mask, called {}, is {}{}",
      output.name, rows.toString(), rows.rank() == 1 ? "example" : "step", nameAmong(batch.masks, mask),
      mask.toString(),
      rows.rank() == 1 && mask.shape().rank() == 2 ? "; the one of time steps is called features" : ""));
}

template <typename Call>
std::invoke_result_t<Call> Network::Impl::naming(const NetworkOutput& output, Call&& call) const {
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
    const Shape& predictions = program.output(i).shape();
    const Tensor& labels = labelsOf(batch, output, predictions);
    const Tensor mask = maskOf(batch, output, predictions);
    const LossValue value = naming(output, [&] {
      return loss(output.head->loss, program.output(i), labels, mask, gradient, 0, context);
    });
    if (derivatives && output.weight != 1) scale(output.weight, gradient, gradient, context);
    addLoss(total, value, i);
  }
  return total;
}

void Network::Impl::predict(const NetworkProgram& program, std::size_t index, Tensor& out, Context& context) {
  const Tensor& predictions = program.output(index);
  out.resize(predictions.shape(), DType::Float32);
  const auto& head = plan.outputs[index].head;
  if (!head || head->loss == Loss::MeanSquaredError) return bring(predictions, out, context);
  // Of a sequence every time step is a row.
  const Shape rows{predictions.elements() / predictions.shape()[-1], predictions.shape()[-1]};
  Tensor& activated = resultLike(out, context);
  Tensor flat = activated.reshape(rows);
  activationForward(head->activation, predictions.reshape(rows), flat, context);
  bring(activated, out, context);
}

Tensor& Network::Impl::resultLike(Tensor& out, Context& context) {
  if (context.device().isCpu()) return out;
  if (!result.defined() || result.shape() != out.shape())
    result = Tensor::zeros(out.shape(), DType::Float32, context.device());
  return result;
}

void Network::Impl::bring(const Tensor& from, Tensor& out, Context& context) {
  if (from.raw() == out.raw()) return;
  copy(from, out, context);
  context.synchronize();
}

const Tensor& Network::Impl::give(const Tensor& input, Context& context) {
  if (input.device() == context.device()) return input;
  if (!given.defined() || given.shape() != input.shape() || given.dtype() != input.dtype())
    given = Tensor::zeros(input.shape(), input.dtype(), context.device());
  copy(input, given, context);
  return given;
}

Network::Network(const TrainingOptions& options, std::uint64_t seed, Context* context)
    : Model(options, context), impl_(std::make_unique<Impl>(*this, seed)) {}

Network::~Network() = default;

void Network::init() {
  for (const auto& input : inputs())
    require(!input.shape.empty(),
            "network: init() needs an inputShape for {}; without it the first batch decides", input.name);
  if (!initialized()) {
    detail::NetworkPlan plan = layOut();
    impl_->blocks = detail::makeBlocks(plan, context().device());
    impl_->plan = std::move(plan);
  }
  context().synchronize();
  impl_->draw();
  for (auto& state : optimizer().state()) setZero(state.values, context());
  setCounters(0, 0);
}

bool Network::initialized() const {
  return !impl_->plan.empty();
}

void Network::prepare(const Batch& first) {
  if (initialized()) return;
  if (first.namesRows()) {
    Batch gathered;
    first.gatherInto(gathered);
    return prepare(gathered);
  }
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
  replica->impl_->blocks = detail::makeBlocks(replica->impl_->plan, context.device());
  return replica;
}

std::span<StateBlock> Network::blocks() {
  return impl_->blocks;
}

StepTicket Network::gradient(const Batch& batch, const GradientReady& onReady) {
  impl_->requireLoss();
  ContextScope scope(context());
  if (impl_->enqueuesSteps) return impl_->enqueue(batch, StepWork::Gradient, onReady, context());
  const Batch& there = impl_->there(batch, context());
  auto& program = impl_->run(there, true, context());
  const StepScore score = impl_->losses(program, there, true, context());
  StepInfo info = impl_->infoOf(there, true);
  info.lossWeight = score.weight;
  program.backward(info, onReady);
  return StepTicket(score);
}

StepTicket Network::step(const Batch& batch) {
  impl_->requireLoss();
  if (!impl_->enqueuesSteps || !optimizer().enqueues()) return Model::step(batch);
  ContextScope scope(context());
  return impl_->enqueue(batch, StepWork::Update, {}, context());
}

double Network::score(const Batch& batch) {
  impl_->requireLoss();
  ContextScope scope(context());
  const Batch& there = impl_->there(batch, context());
  auto& program = impl_->run(there, false, context());
  return impl_->losses(program, there, false, context()).score;
}

void Network::output(const Batch& batch, Tensor& out) {
  ContextScope scope(context());
  const auto& program = impl_->run(impl_->there(batch, context()), false, context());
  impl_->predict(program, 0, out, context());
}

std::string_view Network::outputName() const {
  const auto& outputs = impl_->plan.outputs;
  return outputs.size() > 1 ? std::string_view(outputs.front().name) : std::string_view();
}

std::vector<Tensor> Network::outputs(const Batch& batch) {
  ContextScope scope(context());
  const auto& program = impl_->run(impl_->there(batch, context()), false, context());
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
  const Tensor* inputs[] = {&impl_->give(input, context())};
  program.forward(inputs, info);
  const Tensor& result = program.output(0);
  output.resize(result.shape(), DType::Float32);
  Impl::bring(result, output, context());
  impl_->forwardProgram = &program;
  impl_->forwardInfo = info;
}

void Network::backward(const Tensor& gradOutput, Tensor* gradInput) {
  require(impl_->forwardProgram != nullptr,
          "network: backward() needs the activations of a forward() before it, and no step, gradient or many "
          "other batch sizes since");
  auto& program = *impl_->forwardProgram;
  ContextScope scope(context());
  detail::expectTensor("network", "gradOutput", gradOutput,
                       {.shape = program.outputGradient(0).shape(), .device = gradOutput.device()});
  require(gradInput == nullptr || !impl_->plan.inputs.front().indices,
          "network: there is no gradient by {}, which holds indices", impl_->plan.inputs.front().name);
  copy(gradOutput, program.outputGradient(0), context());
  // The gradient is that of one loss; of parts of an input (DataParallel) all are of the same one.
  impl_->forwardInfo.lossWeight = 1;
  program.backward(impl_->forwardInfo, {}, gradInput != nullptr);
  if (!gradInput) return context().synchronize();  // gradOutput may be changed from here on
  gradInput->resize(program.inputGradient(0).shape(), DType::Float32);
  Tensor& rows = impl_->resultLike(*gradInput, context());
  reorder(program.inputGradient(0), rows, context());
  Impl::bring(rows, *gradInput, context());
}

void Network::setEnqueuedSteps(bool enqueued) {
  require(enqueued || context().device().isCpu(), "network: on {} steps are always enqueued",
          context().device().toString());
  impl_->finish();
  impl_->enqueuesSteps = enqueued;
}

std::int64_t Network::launchedSteps() const {
  std::int64_t steps = 0;
  for (const auto& cached : impl_->programs)
    for (const auto& runner : cached.runners) steps += runner->launched();
  return steps;
}

std::size_t Network::activationBytes() const {
  std::size_t bytes = 0;
  for (const auto& cached : impl_->programs) bytes += cached.program->bytes();
  return bytes;
}

}  // namespace muster
