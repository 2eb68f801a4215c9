#include "examples/muster/convert_from.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <charconv>
#include <span>
#include <string_view>
#include <utility>

#include "examples/muster/deeplearning4j.h"
#include "examples/muster/paths.h"
#include "examples/muster/run_options.h"
#include "muster/core/base/comma_list.h"
#include "muster/core/base/error.h"
#include "muster/core/io/json_value.h"
#include "muster/core/io/model_file.h"
#include "muster/core/io/network_json.h"
#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/models/resnet18.h"
#include "muster/datasets/file_bytes.h"
#include "muster/parallel/run/detail/override_error.h"
#include "muster/parallel/run/named_networks.h"
#include "muster/parallel/run/run_file.h"

namespace program {

using namespace muster;

namespace {

/// A shape such as 1,28,28.
Shape shapeOf(const std::string& text) {
  std::vector<std::int64_t> sizes;
  for (const auto word : commaList(text)) {
    std::int64_t size = 0;
    const auto* const end = word.data() + word.size();
    const auto [rest, error] = std::from_chars(word.data(), end, size);
    require(error == std::errc() && rest == end && size > 0 && sizes.size() < 4,
            "--shape {}: expected up to four numbers of at least 1, as in 1,28,28", text);
    sizes.push_back(size);
  }
  return Shape(std::span<const std::int64_t>(sizes));
}

/// The network of a file: a model, a run file, a result, or a configuration.
std::unique_ptr<Network> networkOf(const std::string& path, const std::vector<std::string>& sets) {
  if (isModelFile(path)) {
    require(sets.empty(), "--set works on run files only, and {} is a model file", path);
    return Network::load(path);
  }
  const auto bytes = readFile(path);
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  try {
    const auto value = parseJson(text);
    const bool plain = value.is_object() && !value.get_object().contains("network") &&
                       !value.get_object().contains("configuration");
    require(!plain || sets.empty(), "--set works on run files only, and this is a network's configuration");
    const auto network = plain ? text : RunFile::parse(text, sets).network;
    require(plain || !isNamedNetwork(network),
            "network: {} is a name; muster summary --json prints its configuration, which a run file may "
            "have instead",
            network);
    return networkFromJson(network);
  } catch (const detail::OverrideError& error) {
    throw InvalidArgument(
        FieldChoices{.byOption = {}, .options = {}, .sets = sets}.problemOf(error.index(), error.what()));
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("--network {}: {}", path, error.what()));
  }
}

/// The field of the first input whose shape is open.
std::string openShapeOf(const Network& network) {
  const auto* const graph = dynamic_cast<const ComputationGraph*>(&network);
  if (graph == nullptr) return "network.inputShape";
  const auto& inputs = graph->configuration().inputs;
  const auto open = std::ranges::find_if(inputs, [](const GraphInput& in) { return in.shape.empty(); });
  return fmt::format("network.inputs[{}].shape", open - inputs.begin());
}

}  // namespace

WeightOptions weightOptions(const ConvertOptions& options) {
  WeightOptions weights{.keep = options.keep, .ignore = options.ignore, .batch = options.batch};
  for (const auto& pair : options.names) {
    if (pair == "torchvision") {
      const auto known = resnet18InTorchvision();
      weights.layers.insert(weights.layers.end(), known.begin(), known.end());
      continue;
    }
    const auto equals = pair.find('=');
    require(equals != pair.npos && equals > 0 && equals + 1 < pair.size(),
            "--name {}: expected a layer's name here and there, as in stem=conv1", pair);
    weights.layers.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
  }
  return weights;
}

std::unique_ptr<Network> fromZip(const std::string& file, const ConvertOptions& options) {
  std::vector<Shape> shapes;
  for (const auto& shape : options.shapes) shapes.push_back(shapeOf(shape));
  constexpr std::pair<std::string_view, std::string_view> kOptions[] = {{"inputShapes=", "--shape "}};
  return sayErrors([&](std::string text) { return withOptions(std::move(text), kOptions); },
                   [&] { return fromDeeplearning4j(file, shapes); });
}

std::unique_ptr<Network> fromWeights(const std::string& file, const ConvertOptions& options) {
  require(!readSafetensors(file, OtherTypes::Skip).metadata.contains("configuration"),
          "--network is for weights of other systems, and {} is a model of muster", file);
  auto network = networkOf(options.network, options.sets);
  try {
    if (!network->initialized()) network->init();
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(
        fmt::format("--network {}: {}; a run file takes the shape from its data, here --set "
                    "{}=[1,28,28] says it, or 31 for 31 numbers; a model file as --network has it, too",
                    options.network, error.what(), openShapeOf(*network)));
  }
  loadWeights(*network, file, weightOptions(options));
  return network;
}

std::unique_ptr<Network> fromModel(const std::string& file) {
  if (!readSafetensors(file, OtherTypes::Skip).metadata.contains("configuration"))
    throw FileError(
        file, "holds no model of muster; if it holds weights of PyTorch, --network says of which network");
  auto network = Network::load(file);
  network->trainingState().clear();
  network->strategyState().clear();
  std::erase_if(network->listenerState(), [](const auto& state) {
    return !state.name.starts_with("dl4j.");  // the file that the model came from
  });
  return network;
}

}  // namespace program
