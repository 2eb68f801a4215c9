#include "muster/core/nn/step/normalisation.h"

#include <algorithm>

#include "muster/core/base/error.h"
#include "muster/core/data/next_batch.h"
#include "muster/core/nn/step/input_moments.h"
#include "muster/core/nn/step/network_batch.h"
#include "muster/core/ops/reorder.h"

namespace muster::detail {
namespace {

/// A Normalise of a network and what it reads.
struct Scaled {
  const NetworkNode& node;
  InputMoments moments;
};

bool isNormalise(const NetworkNode& node) {
  return node.module->type() == Normalise::kType;
}

NormaliseMethod methodOf(const NetworkNode& node) {
  return dynamic_cast<const ModuleOf<Normalise>&>(*node.module).options().method;
}

bool isFitted(const NetworkNode& node) {
  float scale = 0;
  Tensor first = Tensor::view(&scale, {1}, DType::Float32, Device::cpu());
  copy(node.statistics[1].slice(0, {1}), first);
  return scale != 0;
}

/// Adds the layer's name to errors that `run` throws.
template <typename Run>
void naming(const NetworkNode& node, const Run& run) {
  try {
    run();
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("{}: cannot be fitted: {}", node.name, error.what()));
  }
}

}  // namespace

bool Normalisation::fitted() const {
  context_.synchronize();
  return std::ranges::all_of(plan_.nodes,
                             [](const auto& node) { return !isNormalise(node) || isFitted(node); });
}

void Normalisation::fit(Model& network, DataSetIterator& data) {
  Context onCpu;
  Batch batch, gathered;
  std::vector<Scaled> layers;
  std::vector<const Tensor*> features;
  Tensor values;
  data.reset(0);
  bool any = false;
  for (; nextBatch(data, batch); any = true) {
    if (batch.namesRows()) batch.gatherInto(gathered);
    const Batch& read = batch.namesRows() ? gathered : batch;
    if (!any) {
      network.prepare(read);
      for (const auto& node : plan_.nodes)
        if (isNormalise(node)) layers.push_back({node, InputMoments(node.output)});
    }
    findFeatures(plan_, read, features);
    const Tensor* const mask = read.sequenceMask();
    for (auto& layer : layers) {  // Clang 16 captures no structured bindings
      const Tensor& input = *features[layer.node.inputs.front()];
      values.resize(input.shape(), DType::Float32);
      loadFeatures(input, values, onCpu);
      naming(layer.node, [&] {
        layer.moments.add(values, mask && layer.node.output.rank() == 2 ? *mask : Tensor());
      });
    }
  }
  require(any, "fit normalisation: the data set has no batches");
  context_.synchronize();
  for (auto& layer : layers)
    naming(layer.node, [&] {
      layer.moments.store(methodOf(layer.node), layer.node.statistics[0], layer.node.statistics[1]);
    });
}

void Normalisation::requireFitted() {
  if (!context_.device().isCpu()) {
    if (known_) return;
    context_.synchronize();
  }
  for (const auto& node : plan_.nodes)
    if (isNormalise(node) && !isFitted(node))
      throw InvalidArgument(fmt::format(
          "network: {} has no numbers to scale by yet; fit() takes them from the training examples, or call "
          "fitNormalisation(data)",
          node.name));
  known_ = !plan_.empty();
}

}  // namespace muster::detail
