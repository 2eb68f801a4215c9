#include "muster/parallel/run/detail/run_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/core/base/printable_text.h"
#include "muster/core/base/text_table.h"
#include "muster/core/io/model_file.h"
#include "muster/core/io/network_json.h"
#include "muster/core/nn/compile/network_probe.h"
#include "muster/core/nn/step/network_impl.h"
#include "muster/core/ops/detail/class_labels.h"
#include "muster/parallel/run/named_networks.h"

namespace muster::detail {
namespace {

/// Calls `check`; its error says that network and data do not fit.
template <typename Check>
void requireFit(const Check& check) {
  try {
    check();
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("network and data do not fit: {}", error.what()));
  }
}

std::size_t outputsOf(const Network& network) {
  return static_cast<std::size_t>(network.outputShapes().back().second.elements());
}

void requireOutputs(const RunFile& run, const LoadedData& data, std::size_t outputs) {
  const auto& classes = data.description.classes;
  if (!classes.empty() && outputs != classes.size() && (outputs != 1 || classes.size() != 2))
    throw InvalidArgument(
        fmt::format("network and data do not fit: {} has {} ({}), and the network's output has {}{}",
                    run.data.train.empty() ? data.title : run.data.train,
                    plural(classes.size(), "class", "classes"), printableText(csvList(classes)), outputs,
                    run.data.type == "idx" ? "; data.classes is the number of classes" : ""));
}

/// The number of classes that the labels of the network's output may have; 0 if it takes no classes.
std::int64_t classesOf(const Network& network) {
  const auto& output = NetworkProbe::of(network).plan.outputs.back();
  if (!output.head || output.head->own) return 0;
  const Shape predictions = network.outputShapes().back().second.prepend(1);
  return takesClasses(output.head->loss, predictions) ? std::max<std::int64_t>(2, predictions[-1]) : 0;
}

void requireLabels(const LoadedData& data, const Network& network) {
  const auto classes = classesOf(network);
  for (const auto& [file, label, example] : data.largestLabels)
    if (classes > 0 && label >= classes)
      throw InvalidArgument(fmt::format(
          "network and data do not fit: {}: the label of example {} (counted from 0) is {}, and the "
          "network's output has {} classes, 0 to {}",
          file, example, label, classes, classes - 1));
}

void requireWeights(const LoadedData& data, const Network& network) {
  const auto& weights = data.classWeights;
  const auto& classes = data.description.classes;
  if (weights.empty() || (classes.empty() && network.outputShapes().back().second.rank() != 1)) return;
  const auto outputs = outputsOf(network);
  const auto wanted = !classes.empty() ? classes.size() : outputs == 1 ? 2 : outputs;
  require(weights.size() == wanted, "data.classWeights: there are {} weights for {} classes", weights.size(),
          wanted);
}

/// Finds shapes that do not fit before the training.
void tryOne(Network& network, Batch& batch) {
  Batch one;  // example
  batch.gatherInto(one);
  for (auto* tensors : {&one.features, &one.labels, &one.masks})
    for (auto& tensor : *tensors) tensor.value = tensor.value.rows(0, 1);
  static_cast<Model&>(network).score(one);
}

/// Begins with the weights of another model.
void loadInitial(Network& network, const RunFile& run, const LoadedData& data) {
  // The weights of one set of pictures are a start for another one with other classes.
  if (data.description.pictures) network.setInputDescription({});
  loadParameters(network, run.training.initialModel);
  network.setInputDescription(data.description);
}

}  // namespace

std::unique_ptr<Network> makeNetwork(const RunFile& run, LoadedData& data) {
  auto network =
      networkFromJson(isNamedNetwork(run.network) ? configurationFor(run.network, data) : run.network);
  Batch first;
  data.any().reset(0);
  require(data.any().next(first), "data: there are no examples to train with");
  network->prepare(first);
  requireOutputs(run, data, outputsOf(*network));
  requireFit([&] { network->setInputDescription(data.description); });
  requireLabels(data, *network);
  requireWeights(data, *network);
  if (!network->normalisationFitted()) network->fitNormalisation(data.any());
  requireFit([&] { tryOne(*network, first); });
  if (!run.training.initialModel.empty()) loadInitial(*network, run, data);
  return network;
}

std::unique_ptr<Network> networkForData(const RunFile& run) {
  LoadedData data = loadData(run.data, PlacementWish::Host, std::array{Device::cpu()}, 1);
  return makeNetwork(run, data);
}

}  // namespace muster::detail
