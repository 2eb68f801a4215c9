#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/core/data/output_names.h"
#include "muster/core/nn/compile/network_state.h"
#include "muster/core/nn/step/network_batch.h"
#include "muster/core/nn/step/network_impl.h"

namespace muster {
namespace {

/// @throws InvalidArgument unless the description's features and outputs are the network's. Of a graph with
///         several inputs or outputs it cannot tell which one it describes.
void requireFits(const InputDescription& description, const detail::NetworkPlan& plan) {
  if (plan.inputs.size() == 1 && !description.columns.empty()) {
    const Shape& input = plan.inputs.front().shape;
    require(input == Shape{description.features()}, "the model reads {}, and its description makes {}",
            input.toString(), plural(description.features(), "feature"));
  }
  if (outputNames(description).empty() || plan.outputs.size() != 1) return;
  const Shape& output = plan.shapeOf(plan.outputs.front().value);
  requireOutputs(description, output.rank() > 0 ? output[-1] : 1);
}

}  // namespace

Network::Impl::Impl(Network& network, std::uint64_t networkSeed)
    : context(network.context()),
      seed(networkSeed),
      enqueuesSteps(!context.device().isCpu()),
      steps(network, seed, plan, programs),
      copies(context) {}

const Batch& Network::Impl::there(const Batch& batch) {
  if (!context.device().isCpu()) return steps.fetch(batch);
  if (!batch.namesRows()) return batch;
  batch.gatherInto(gathered_);
  return gathered_;
}

detail::NetworkProgram& Network::Impl::run(const Batch& batch, bool training) {
  findFeatures(plan, batch, features_);
  requireFitted();
  auto& program = *programs.get(plan, detail::sizeOf(plan, features_), training, context).program;
  program.forward(features_, detail::infoOf(batch, seed, training));
  return program;
}

Network::Network(const TrainingOptions& options, std::uint64_t seed, Context* context)
    : Model(options, context), impl_(std::make_unique<Impl>(*this, seed)) {}

Network::~Network() = default;

void Network::init() {
  requireNotTrainedElsewhere("init");
  for (const auto& input : inputs())
    require(!input.shape.empty(),
            "network: init() needs an inputShape for {}; without it the first batch decides", input.name);
  if (!initialized()) {
    detail::NetworkPlan plan = layOut();
    requireFits(impl_->description, plan);
    impl_->blocks =
        detail::makeBlocks(plan, context().device(), trainingOptions().updater.stateNames().size());
    impl_->plan = std::move(plan);
  }
  impl_->forgetNormalisation();
  context().synchronize();
  detail::drawValues(impl_->plan, impl_->seed);
  for (auto& state : optimizer().state()) setZero(state.values, context());
  strategyState().clear();
  listenerState().clear();
  trainingState().clear();
  setLoadedFrom({});
  setCounters(0, 0);
  setUpdates(0);
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
    require(shapes.back().elements() > 0,
            "network: the first batch gives the shape of {}, but its examples are empty: {}", input.name,
            value.toString());
  }
  setInputShapes(shapes);
  try {
    init();
  } catch (...) {  // forget shapes that do not fit: the next batch may have other shapes
    if (!initialized()) setInputShapes(openShapes);
    throw;
  }
}

const InputDescription& Network::inputDescription() const {
  return impl_->description;
}

void Network::setInputDescription(InputDescription description) {
  if (initialized()) requireFits(description, impl_->plan);
  impl_->description = std::move(description);
}

std::unique_ptr<Network> Network::cloneNetwork() {
  requireNotTrainedElsewhere("clone");
  require(initialized(), "network: clone() before init()");
  auto copy = make(nullptr);
  copy->init();
  copy->impl_->description = impl_->description;
  copy->copyStateFrom(*this);
  return copy;
}

std::unique_ptr<Model> Network::replicate(Context& context) const {
  require(initialized(), "network: replicate() before init()");
  auto replica = make(&context);
  replica->impl_->plan = replica->layOut();
  replica->impl_->blocks = detail::makeBlocks(replica->impl_->plan, context.device());
  replica->impl_->description = impl_->description;
  return replica;
}

std::span<StateBlock> Network::blocks() {
  return impl_->blocks;
}

}  // namespace muster
