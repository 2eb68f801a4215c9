#include <algorithm>

#include "muster/core/base/error.h"
#include "muster/core/data/next_batch.h"
#include "muster/core/data/training_reads.h"
#include "muster/core/nn/step/network_impl.h"

// What is learnt from a data set, or refused, before a training.

namespace muster {
namespace {

bool has(const std::vector<detail::NetworkOutline>& layers, std::string_view type) {
  return std::ranges::find(layers, type, &detail::NetworkOutline::type) != layers.end();
}

/// Whether the layer normalises by the one value that each channel of a single example has.
bool needsTwoExamples(const detail::NetworkNode& node) {
  const auto* const norm = dynamic_cast<const detail::ModuleOf<BatchNorm>*>(node.module.get());
  if (norm == nullptr || norm->options().synchronised || node.settings.frozen) return false;
  const Shape& input = node.inputShapes.front();
  return input.elements() == input[0];
}

/// Whether the last batch of an epoch has one example, as far as the iterator knows.
bool endsWithOne(const DataSetIterator& data) {
  const auto examples = data.examples(), batch = data.batchSize();
  return examples && batch && *examples > 0 && *batch > 0 && (*batch == 1 || *examples % *batch == 1);
}

/// @throws InvalidArgument naming a layer that cannot normalise the last batch.
void requireBatchesToNormalise(const detail::NetworkPlan& plan, const DataSetIterator& data) {
  for (const auto& node : plan.nodes)
    if (needsTwoExamples(node))
      throw InvalidArgument(fmt::format(
          "network: {} (batchnorm) normalises over the examples of a batch, and the last batch has one: {} "
          "examples in batches of {}; give another batch size, or leave that batch out (dropLast)",
          node.name, data.examples().value(), data.batchSize().value()));
}

}  // namespace

bool Network::normalisationFitted() {
  return impl_->normalisation.fitted();
}

void Network::fitNormalisation(DataSetIterator& data) {
  requireNotTrainedElsewhere("fit normalisation");
  requireNotRead(data, "fit normalisation");
  requireSameInput(data, inputDescription(), "fit normalisation");
  impl_->normalisation.fit(*this, data);
}

void Network::fitBeforeTraining(DataSetIterator& data) {
  requireSameInput(data, inputDescription(), "fit");
  const auto layers = outline();
  if (has(layers, Normalise::kType) && (!initialized() || !normalisationFitted()))
    impl_->normalisation.fit(*this, data);
  if (!has(layers, BatchNorm::kType) || !endsWithOne(data)) return;
  if (Batch first; !initialized()) {  // the first batch has the shapes
    data.reset(0);
    if (!nextBatch(data, first)) return;
    prepare(first);
  }
  requireBatchesToNormalise(impl_->plan, data);
}

}  // namespace muster
