#include "muster/core/nn/network.h"

#include "muster/core/base/error.h"
#include "muster/core/nn/detail/network_batch.h"
#include "muster/core/nn/detail/network_loss.h"
#include "muster/core/nn/detail/network_state.h"
#include "muster/core/nn/detail/program_cache.h"
#include "muster/core/nn/detail/score_ring.h"
#include "muster/core/ops/detail/expect.h"
#include "muster/core/ops/reorder.h"

namespace muster {

using detail::NetworkProgram;
using detail::ProgramCache;
using detail::StepLane;
using detail::StepRunner;
using detail::StepWork;

struct Network::Impl final : PendingScores {
  Impl(Network& n, std::uint64_t s) : network(n), seed(s), enqueuesSteps(!n.context().device().isCpu()) {}

  /// The steps of a program with batches like this one.
  StepRunner& runner(ProgramCache::Entry& owner, const Batch& batch, Context& context);
  /// Runs a batch through. @return the program that holds what came out.
  NetworkProgram& run(const Batch& batch, bool training, Context& context);
  StepInfo infoOf(const Batch& batch, bool training) const;
  void requireSingle(std::string_view function) const;

  /// Of a batch that, as far as it is known, fits.
  std::int64_t examplesOf(const Batch& batch);
  /// `batch` where the network computes, with all its numbers.
  const Batch& there(const Batch& batch, Context& context);
  /// Sends a training step on its way.
  StepTicket enqueue(const Batch& batch, StepWork work, Context& context);
  /// Everything of a step from its numbers to its results, enqueued.
  void enqueueStep(NetworkProgram& program, StepLane& lane, StepWork work, Context& context);
  void settle(std::uint64_t number, const NetworkProgram& program, const StepLane& lane, StepWork work);
  bool ready(std::uint64_t number) override;
  StepScore wait(std::uint64_t number) override;

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
  ProgramCache programs;

  /// Which use of its program `forward` was; its activations are there for `backward` until the next.
  std::uint64_t forwardUse = 0;
  StepInfo forwardInfo;
  /// On a GPU what `forward` was given, and what output and input gradient are copied from.
  Tensor given, result;
  Batch gathered;  // on the CPU, of a batch that names rows
};

StepRunner& Network::Impl::runner(ProgramCache::Entry& owner, const Batch& batch, Context& context) {
  if (StepRunner* found = ProgramCache::find(owner, batch)) return *found;
  NetworkProgram& made = *owner.program;
  return ProgramCache::add(owner, std::make_unique<StepRunner>(
                                      batch, plan.outputs.size(), made.recordable(),
                                      [this, &made, &context](StepLane& lane, StepWork work) {
                                        enqueueStep(made, lane, work, context);
                                      },
                                      [this, &made](std::uint64_t number, const StepLane& lane,
                                                    StepWork work) { settle(number, made, lane, work); },
                                      context));
}

StepInfo Network::Impl::infoOf(const Batch& batch, bool training) const {
  return {.stamp = batch.stamp, .seed = seed, .training = training, .sequenceMask = batch.sequenceMask()};
}

NetworkProgram& Network::Impl::run(const Batch& batch, bool training, Context& context) {
  findFeatures(plan, batch, features);
  auto& made = *programs.get(plan, features.front()->shape()[0], training, context).program;
  made.forward(features, infoOf(batch, training));
  return made;
}

std::int64_t Network::Impl::examplesOf(const Batch& batch) {
  requireInitialized(plan);
  if (batch.namesRows())
    batch.requireMaskValues();  // on a GPU nobody reads them
  else
    findFeatures(plan, batch, features);
  require(batch.examples() > 0, "network: the batch has no examples");
  return batch.examples();
}

const Batch& Network::Impl::there(const Batch& batch, Context& context) {
  if (context.device().isCpu()) {
    if (!batch.namesRows()) return batch;
    batch.gatherInto(gathered);
    return gathered;
  }
  auto& owner = programs.get(plan, examplesOf(batch), false, context);
  StepLane& lane = runner(owner, batch, context).begin(batch);
  lane.fetchAlone();
  return lane.batch();
}

StepTicket Network::Impl::enqueue(const Batch& batch, StepWork work, Context& context) {
  auto& owner = programs.get(plan, examplesOf(batch), true, context);
  StepRunner& steps = runner(owner, batch, context);
  StepLane& lane = steps.begin(batch);
  if (work == StepWork::Update) {
    auto& optimizer = network.optimizer();
    optimizer.plan(network.block(BlockKind::Parameters), context);
    optimizer.writeNumbers(batch.stamp.iteration, batch.stamp.epoch, lane.hostUpdateNumbers());
  }
  const std::uint64_t number = scores.nextNumber();
  steps.run(number, work);
  return {*this, number};
}

void Network::Impl::enqueueStep(NetworkProgram& program, StepLane& lane, StepWork work, Context& context) {
  lane.fetch();
  findFeatures(plan, lane.batch(), features);
  StepInfo info = infoOf(lane.batch(), true);
  if (program.recordable()) info.position = &lane.position();
  program.forward(features, info);
  enqueueLosses(plan, program, lane, context);
  if (!program.recordable()) {
    lane.fetchResults();
    context.synchronize();
    info.lossWeight = scoreOf(plan, program, lane).weight;
  }
  program.backward(info);
  if (work == StepWork::Update)
    network.optimizer().enqueue(network.block(BlockKind::Parameters), network.block(BlockKind::Gradients),
                                lane.updateNumbers(), lane.penalty(), lane.losses());
  lane.fetchResults();
}

void Network::Impl::settle(std::uint64_t number, const NetworkProgram& program, const StepLane& lane,
                           StepWork work) {
  try {
    StepScore score = scoreOf(plan, program, lane);
    if (work == StepWork::Update) score.score += lane.hostPenalty();
    scores.put(number, score);
  } catch (...) {
    scores.put(number, std::current_exception());
  }
}

bool Network::Impl::ready(std::uint64_t number) {
  return programs.complete(number);
}

StepScore Network::Impl::wait(std::uint64_t number) {
  programs.finish(number);
  return scores.get(number);
}

void Network::Impl::requireSingle(std::string_view function) const {
  requireInitialized(plan);
  require(plan.inputs.size() == 1 && plan.outputs.size() == 1,
          "network: {} is for networks with one input and one output, this one has {} and {}", function,
          plan.inputs.size(), plan.outputs.size());
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
  detail::drawValues(impl_->plan, impl_->seed);
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
    const Tensor& value = detail::tensorFor(first.features, "features", input.name, open.size() == 1);
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

StepTicket Network::gradient(const Batch& batch) {
  detail::requireLoss(impl_->plan);
  ContextScope scope(context());
  if (impl_->enqueuesSteps) return impl_->enqueue(batch, StepWork::Gradient, context());
  const Batch& there = impl_->there(batch, context());
  auto& program = impl_->run(there, true, context());
  const StepScore score = detail::lossOf(impl_->plan, program, there, true, context());
  StepInfo info = impl_->infoOf(there, true);
  info.lossWeight = score.weight;
  program.backward(info);
  return StepTicket(score);
}

StepTicket Network::step(const Batch& batch) {
  detail::requireLoss(impl_->plan);
  if (!impl_->enqueuesSteps || !optimizer().enqueues()) return Model::step(batch);
  ContextScope scope(context());
  return impl_->enqueue(batch, StepWork::Update, context());
}

double Network::score(const Batch& batch) {
  detail::requireLoss(impl_->plan);
  ContextScope scope(context());
  const Batch& there = impl_->there(batch, context());
  auto& program = impl_->run(there, false, context());
  return detail::lossOf(impl_->plan, program, there, false, context()).score;
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
  detail::requireInput(impl_->plan, 0, input);
  ContextScope scope(context());
  // The activations are kept in evaluation, too: a backward pass may follow.
  auto& entry = impl_->programs.get(impl_->plan, input.shape()[0], true, context());
  const StepInfo info{.stamp = {.epoch = pass.call, .firstExample = pass.firstExample},
                      .seed = impl_->seed,
                      .training = pass.training};
  const Tensor* inputs[] = {&impl_->give(input, context())};
  entry.program->forward(inputs, info);
  const Tensor& result = entry.program->output(0);
  output.resize(result.shape(), DType::Float32);
  Impl::bring(result, output, context());
  impl_->forwardUse = entry.use;
  impl_->forwardInfo = info;
}

void Network::backward(const Tensor& gradOutput, Tensor* gradInput) {
  NetworkProgram* const held = impl_->programs.heldSince(impl_->forwardUse);
  require(held != nullptr,
          "network: backward() needs the activations of a forward() before it, and no step, gradient or many "
          "other batch sizes since");
  auto& program = *held;
  ContextScope scope(context());
  detail::expectTensor("network", "gradOutput", gradOutput,
                       {.shape = program.outputGradient(0).shape(), .device = gradOutput.device()});
  require(gradInput == nullptr || !impl_->plan.inputs.front().indices,
          "network: there is no gradient by {}, which holds indices", impl_->plan.inputs.front().name);
  copy(gradOutput, program.outputGradient(0), context());
  // The gradient is that of one loss; of parts of an input (DataParallel) all are of the same one.
  impl_->forwardInfo.lossWeight = 1;
  program.backward(impl_->forwardInfo, gradInput != nullptr);
  if (!gradInput) return context().synchronize();  // gradOutput may be changed from here on
  gradInput->resize(program.inputGradient(0).shape(), DType::Float32);
  Tensor& rows = impl_->resultLike(*gradInput, context());
  reorder(program.inputGradient(0), rows, context());
  Impl::bring(rows, *gradInput, context());
}

void Network::setEnqueuedSteps(bool enqueued) {
  require(enqueued || context().device().isCpu(), "network: on {} steps are always enqueued",
          context().device().toString());
  impl_->programs.finish();
  impl_->enqueuesSteps = enqueued;
}

std::int64_t Network::launchedSteps() const {
  return impl_->programs.launched();
}

std::size_t Network::activationBytes() const {
  return impl_->programs.bytes();
}

}  // namespace muster
