#include "muster/core/nn/network.h"

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/core/data/output_names.h"
#include "muster/core/nn/compile/network_state.h"
#include "muster/core/nn/step/network_batch.h"
#include "muster/core/nn/step/network_impl.h"
#include "muster/core/nn/step/network_loss.h"

namespace muster {
namespace {

/// @throws InvalidArgument unless the description's features and outputs are the network's. Of a graph with
///         several inputs or outputs it is unknown which one it describes.
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
      normalisation(plan, context),
      steps(network, seed, plan, programs),
      copies(context),
      passes(seed, plan, normalisation, steps, programs, copies, context),
      manual(seed, plan, programs, copies, context) {}

Network::Network(const TrainingOptions& options, std::uint64_t seed, Context* context)
    : Model(options, context), impl_(std::make_unique<Impl>(*this, seed)) {}

Network::~Network() = default;

void Network::init() {
  requireNotTrainedElsewhere("init");
  requireInputShapes();
  if (!initialized()) {
    detail::NetworkPlan plan = layOut();
    requireFits(impl_->description, plan);
    impl_->blocks =
        detail::makeBlocks(plan, context().device(), trainingOptions().updater.stateNames().size());
    impl_->plan = std::move(plan);
  }
  impl_->normalisation.forget();
  context().synchronize();
  detail::drawValues(impl_->plan, impl_->seed);
  for (auto& state : optimizer().state()) setZero(state.values, context());
  clearAttached();
  setCounters(0, 0);
  setUpdates(0);
}

bool Network::initialized() const {
  return !impl_->plan.empty();
}

void Network::prepare(const Batch& first) {
  if (initialized()) return;
  const std::vector<Shape> openShapes = inputShapes();
  setInputShapes(detail::shapesFrom(inputs(), first));
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

std::string_view Network::outputName() const {
  const auto& outputs = impl_->plan.outputs;
  return outputs.size() > 1 ? std::string_view(outputs.front().name) : std::string_view();
}

Task Network::task() const {
  return detail::taskOf(impl_->plan);
}

Batch Network::exampleFeatures() const {
  return detail::exampleFor(impl_->plan);
}

}  // namespace muster
