// muster convert: models to other formats, and weights of other frameworks into models.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <boost/json/object.hpp>
#include <charconv>

#include "examples/muster/commands.h"
#include "examples/muster/deeplearning4j.h"
#include "examples/muster/options.h"
#include "examples/muster/paths.h"
#include "examples/muster/standard_streams.h"
#include "examples/muster/to_onnx.h"
#include "muster/core/base/comma_list.h"
#include "muster/core/base/error.h"
#include "muster/core/io/json_value.h"
#include "muster/core/io/model_file.h"
#include "muster/core/io/network_json.h"
#include "muster/core/io/weights.h"
#include "muster/core/nn/chain_as_graph.h"
#include "muster/core/nn/models/resnet18.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/datasets/file_bytes.h"
#include "muster/parallel/run/named_networks.h"
#include "muster/parallel/run/run_file.h"
#include "muster/parallel/run/run_sets.h"

namespace program {
namespace {

using namespace muster;

constexpr std::string_view kIntroduction =
    R"(Converts a model of muster into other formats, and models of Deeplearning4j and weights of PyTorch into
models of muster.

  muster convert model.safetensors --out model.onnx           for onnxruntime and others
  muster convert model.safetensors --to weights --out weights.safetensors --name stem=conv1
                                                              PyTorch's state_dict()
  muster convert weights.safetensors --network run.json --out model.safetensors --name stem=conv1
                                                              the same, back
  muster convert checkpoint.safetensors --out model.safetensors
                                                              a checkpoint's model, without what resumes it
  muster convert model.safetensors --to graph --out graph.safetensors
                                                              a chain of layers as a graph
  muster convert model.safetensors --out network.json         the configuration, as a run file has it
  muster convert model.zip --out model.safetensors            a model of Deeplearning4j, to train on or to use
  muster convert model.safetensors --to dl4j --out model.zip  the way back
)";

/// Target format.
enum class Format { Onnx, Weights, Model, Graph, Json, Dl4j };

struct Options {
  std::filesystem::path out;
  std::string to;
  std::string network;
  std::vector<std::string> sets, names, keep, ignore, shapes;
  std::int64_t batch = 0;
  bool lengths = false;
};

Format formatOf(const Options& options) {
  static constexpr std::array<std::pair<std::string_view, Format>, 6> kNames{{{"onnx", Format::Onnx},
                                                                              {"weights", Format::Weights},
                                                                              {"model", Format::Model},
                                                                              {"graph", Format::Graph},
                                                                              {"json", Format::Json},
                                                                              {"dl4j", Format::Dl4j}}};
  require(!options.out.empty(), "--out is missing: the file to write");
  const auto ending = options.out.extension();
  const std::string to = !options.to.empty()        ? options.to
                         : ending == ".onnx"        ? "onnx"
                         : ending == ".json"        ? "json"
                         : ending == ".safetensors" ? "model"
                         : ending == ".zip"         ? "dl4j"
                                                    : "";
  require(!to.empty(),
          "--out {}: its ending does not give the format, as .onnx, .safetensors, .zip and .json do; set it "
          "with --to",
          options.out.string());
  for (const auto& [name, format] : kNames)
    if (name == to) return format;
  throw InvalidArgument(fmt::format("--to must be onnx, weights, model, graph, json or dl4j, got {}", to));
}

WeightOptions weightOptions(const Options& options) {
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

std::unique_ptr<Network> fromZip(const std::string& file, const Options& options) {
  std::vector<Shape> shapes;
  for (const auto& shape : options.shapes) shapes.push_back(shapeOf(shape));
  return fromDeeplearning4j(file, shapes);
}

/// The network of a file: a model, a run file, a result, or a configuration.
std::unique_ptr<Network> networkOf(const std::string& path, const std::vector<std::string>& sets) {
  if (path.ends_with(".safetensors")) {
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
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("--network {}: {}", path, error.what()));
  }
}

/// Loads another framework's weights into a network.
std::unique_ptr<Network> fromWeights(const std::string& file, const Options& options) {
  require(!readSafetensors(file, OtherTypes::Skip).metadata.contains("configuration"),
          "--network is for weights of other systems, and {} is a model of muster", file);
  auto network = networkOf(options.network, options.sets);
  try {
    if (!network->initialized()) network->init();
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(
        fmt::format("--network {}: {}; a run file takes the shape from its data, here --set "
                    "network.inputShape=[1,28,28] says it",
                    options.network, error.what()));
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

std::unique_ptr<Network> toGraph(Network& network) {
  auto* const chain = dynamic_cast<MultiLayerNetwork*>(&network);
  require(chain != nullptr, "--to graph: the model is a graph already");
  return asGraph(*chain);
}

bool isZip(const std::filesystem::path& file) {
  return file.extension() == ".zip";
}

void checkOptions(const CommandLine& line, const Options& options, Format format, bool zip) {
  const bool in = !options.network.empty(), out = format == Format::Weights;
  if (!in) line.refuse({"set", "keep", "ignore"}, "needs --network: it is for weights that are read");
  if (!in && !out) line.refuse({"name", "batch"}, "is for weights: it needs --network or --to weights");
  require(!in || !out, "--to weights needs a model of muster, and --network is for weights of other systems");
  require(!in || !zip, "--network is for weights, and the first argument is a model of Deeplearning4j");
  if (!zip) line.refuse({"shape"}, "is for models of Deeplearning4j that are read");
  if (format != Format::Onnx) line.refuse({"lengths"}, "works with ONNX only");
}

}  // namespace

int convert(const Call& call) {
  Options options;
  CommandLine line(kIntroduction);
  line.group("Options");
  line.add("out", options.out, "FILE", "the file to write");
  line.add(
      "to", options.to, "FORMAT",
      "onnx, weights (PyTorch's state_dict in a safetensors file), model, graph (a model, too), json (the "
      "configuration) or dl4j (a zip file of Deeplearning4j); by default the ending of --out decides: "
      ".onnx, .safetensors (model), .json, .zip (dl4j)");
  line.list("shape", options.shapes, "SHAPE",
            "the shape of an example, as in 1,28,28 or, for sequences of 50 steps, 50,8, where a model of "
            "Deeplearning4j leaves it open; by default any length or size. Once for each input");
  line.flag("lengths", options.lengths,
            "give the ONNX model another input, the length of each sequence, instead of a mask");
  line.group("Weights of PyTorch");
  line.add("network", options.network, "FILE",
           "the network whose weights the first argument holds: a run file or result, a configuration or a "
           "model file");
  describeSets(line, options.sets);
  line.list("name", options.names, "HERE=THERE",
            "a layer that has another name in the weights' file, or torchvision for the names of its "
            "ResNet-18. May be given several times");
  line.list("keep", options.keep, "LAYER",
            "a layer that keeps its initial weights, such as a new head. May be given several times");
  line.list("ignore", options.ignore, "END",
            "ignore the file's tensors whose names end so, as in fc.weight. May be given several times");
  line.add("batch", options.batch, "N",
           "batch size with which the weights were trained, to convert PyTorch's unbiased running variances; "
           "0: do not convert",
           atLeast(0));
  if (!readOptions(line, call)) return 0;
  const auto& file = fileOf(call, "a model file");
  const Format format = formatOf(options);
  const bool zip = isZip(file);
  checkOptions(line, options, format, zip);
  Paths paths;
  paths.reads("the first argument", file);
  paths.reads("--network", options.network);
  if (format == Format::Json)
    paths.writesResult("--out", options.out);
  else
    paths.writes("--out", options.out);
  paths.check();

  auto network = zip                       ? fromZip(file, options)
                 : options.network.empty() ? fromModel(file)
                                           : fromWeights(file, options);
  const auto notes = options.network.empty() && !zip ? readModelNotes(file) : ModelNotes();
  switch (format) {
    case Format::Onnx:
      toOnnx(*network, options.out, options.lengths);
      break;
    case Format::Weights:
      saveWeights(*network, options.out, weightOptions(options));
      break;
    case Format::Graph:
      saveModel(*toGraph(*network), options.out, notes);
      break;
    case Format::Model:
      saveModel(*network, options.out, notes);
      break;
    case Format::Dl4j:
      toDeeplearning4j(*network, options.out);
      break;
    case Format::Json:
      if (!writeResult(options.out, network->toJson())) return 0;
      break;
  }
  fmt::print("written: {}\n", options.out.string());
  return 0;
}

}  // namespace program
