// muster convert: models to other formats, and weights of other frameworks into models.
#include <fmt/format.h>

#include <array>

#include "examples/muster/commands.h"
#include "examples/muster/convert_from.h"
#include "examples/muster/deeplearning4j.h"
#include "examples/muster/options.h"
#include "examples/muster/paths.h"
#include "examples/muster/standard_streams.h"
#include "examples/muster/to_onnx.h"
#include "muster/core/base/error.h"
#include "muster/core/io/model_file.h"
#include "muster/core/io/weights.h"
#include "muster/core/nn/chain_as_graph.h"
#include "muster/core/nn/multi_layer_network.h"

namespace program {
namespace {

using namespace muster;

constexpr std::string_view kConvertIntroduction =
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

Format formatOf(const ConvertOptions& options) {
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

std::unique_ptr<Network> toGraph(Network& network) {
  auto* const chain = dynamic_cast<MultiLayerNetwork*>(&network);
  require(chain != nullptr, "--to graph: the model is a graph already");
  return asGraph(*chain);
}

bool isZip(const std::filesystem::path& file) {
  return file.extension() == ".zip";
}

void checkOptions(const CommandLine& line, const ConvertOptions& options, Format format, bool zip) {
  const bool in = !options.network.empty(), out = format == Format::Weights;
  if (!in) line.refuse({"set", "keep", "ignore"}, "needs --network: it is for weights that are read");
  if (!in && !out) line.refuse({"name", "batch"}, "is for weights: it needs --network or --to weights");
  require(!in || !out, "--to weights needs a model of muster, and --network is for weights of other systems");
  require(!in || !zip, "--network is for weights, and the first argument is a model of Deeplearning4j");
  if (!zip) line.refuse({"shape"}, "is for models of Deeplearning4j that are read");
  if (format != Format::Onnx) line.refuse({"lengths"}, "works with ONNX only");
}

void describe(CommandLine& line, ConvertOptions& options) {
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
}

Paths pathsOfConversion(const std::string& file, const ConvertOptions& options, Format format) {
  Paths paths;
  paths.reads("the first argument", file);
  paths.reads("--network", options.network);
  if (format == Format::Json)
    paths.writesResult("--out", options.out, Content::Network);
  else
    paths.writes("--out", options.out,
                 format == Format::Onnx   ? Content::Onnx
                 : format == Format::Dl4j ? Content::Deeplearning4j
                                          : Content::Model);
  return paths;
}

/// Writes a model. @return whether the program says so: not if it went to standard output.
bool write(Network& network, const ConvertOptions& options, Format format, const ModelNotes& notes) {
  switch (format) {
    case Format::Onnx:
      toOnnx(network, options.out, options.lengths);
      break;
    case Format::Weights:
      saveWeights(network, options.out, weightOptions(options));
      break;
    case Format::Graph:
      saveModel(*toGraph(network), options.out, notes);
      break;
    case Format::Model:
      saveModel(network, options.out, notes);
      break;
    case Format::Dl4j:
      toDeeplearning4j(network, options.out);
      break;
    case Format::Json:
      return writeResult(options.out, network.toJson());
  }
  return true;
}

}  // namespace

int convert(const Call& call) {
  ConvertOptions options;
  CommandLine line(kConvertIntroduction);
  describe(line, options);
  if (!readOptions(line, call)) return 0;
  const auto& file = fileOf(call, "a model file");
  const Format format = formatOf(options);
  const bool zip = isZip(file);
  checkOptions(line, options, format, zip);
  pathsOfConversion(file, options, format).check();

  auto network = zip                       ? fromZip(file, options)
                 : options.network.empty() ? fromModel(file)
                                           : fromWeights(file, options);
  const auto notes = options.network.empty() && !zip ? readModelNotes(file) : ModelNotes();
  if (write(*network, options, format, notes)) fmt::print("written: {}\n", options.out.string());
  return 0;
}

}  // namespace program
