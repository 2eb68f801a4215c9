#include <algorithm>

#include "muster/core/base/error.h"
#include "muster/core/data/next_batch.h"
#include "muster/core/nn/step/network_impl.h"

// What is learnt from a data set, or refused, before a training.

namespace muster {
namespace {

/// Whether the layer normalises by the one value that each channel of a single example has.
bool needsTwoExamples(const detail::NetworkNode& node) {
  const auto* const norm = dynamic_cast<const detail::ModuleOf<BatchNorm>*>(node.module.get());
  if (norm == nullptr || norm->options().synchronised || node.settings.frozen) return false;
  const Shape& input = node.inputShapes.front();
  return input.elements() == input[0];
}

/// Whether the last batch of an epoch has one example, as far as the iterator tells.
bool endsWithOne(const DataSetIterator& data) {
  const auto examples = data.examples(), batch = data.batchSize();
  return examples && batch && *examples > 0 && *batch > 0 && (*batch == 1 || *examples % *batch == 1);
}

}  // namespace

void Network::fitBeforeTraining(DataSetIterator& data) {
  requireSameInput(data, inputDescription(), "fit");
  const auto layers = outline();
  const auto has = [&](std::string_view type) {
    return std::ranges::any_of(layers, [&](const auto& row) { return row.type == type; });
  };
  if (has(Normalise::kType) && (!initialized() || !normalisationFitted()))
    impl_->fitNormalisation(*this, data);
  if (!has(BatchNorm::kType) || !endsWithOne(data)) return;
  if (Batch first; !initialized()) {  // the first batch has the shapes
    data.reset(0);
    if (!nextBatch(data, first)) return;
    prepare(first);
  }
  for (const auto& node : impl_->plan.nodes)
    if (needsTwoExamples(node))
      throw InvalidArgument(fmt::format(
          "network: {} (batchnorm) normalises over the examples of a batch, and the last batch has one: {} "
          "examples in batches of {}; give another batch size, or leave that batch out (dropLast)",
          node.name, data.examples().value(), data.batchSize().value()));
}

}  // namespace muster
