#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/interop/dl4j/detail/flat_state.h"
#include "muster/core/interop/dl4j/detail/nd4j_array.h"
#include "muster/core/interop/dl4j/detail/normaliser.h"
#include "muster/core/interop/dl4j/detail/written_layer.h"
#include "muster/core/interop/dl4j/detail/zip_file.h"
#include "muster/core/interop/dl4j/dl4j.h"
#include "muster/core/io/detail/file_shortage.h"
#include "muster/core/io/json_value.h"
#include "muster/core/nn/compile/network_probe.h"
#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/multi_layer_network.h"

namespace muster::dl4j {
namespace {

namespace json = boost::json;
using namespace dl4j::detail;
using muster::detail::NetworkPlan;

/// A layer or vertex of Deeplearning4j with what is before it.
struct Placed {
  WrittenLayer written;
  json::value preprocessor;
  std::vector<std::string> inputs;
};

/// A value of the network there.
struct Value {
  std::string name;
  Form form;
  /// Where a change of form waits for the next layer.
  Form from;
  Shape shape;  ///< before that change
};

Form formOf(const Shape& shape) {
  return shape.rank() == 3 ? Form::Image : shape.rank() == 2 ? Form::Sequence : Form::Rows;
}

/// Turns a network's nodes into layers and vertices there.
class NetworkWriter {
 public:
  NetworkWriter(Network& network, const NetworkPlan& plan, Problems& problems)
      : network_(network), plan_(plan), training_(network.trainingOptions()), problems_(problems) {
    for (const auto& input : plan.inputs)
      values_.push_back(
          {input.name, input.indices ? Form::Rows : formOf(input.shape), Form::Rows, input.shape});
    for (auto& value : values_) value.from = value.form;
    for (const auto& node : plan.nodes)
      if (!isFirst(node)) add(node);
  }

  const std::vector<Placed>& layers() const { return placed_; }
  /// The name of the Normalise that the network begins with; empty if there is none.
  const std::string& normaliser() const { return normaliser_; }
  /// Whether a change of form waits for a layer, of which there is none after an output.
  bool changesForm(std::size_t value) const { return values_[value].form != values_[value].from; }
  /// The name there of an output here.
  const std::string& nameOf(std::size_t value) const { return values_[value].name; }

 private:
  /// Takes a Normalise that reads the only input for the file's normaliser.
  bool isFirst(const muster::detail::NetworkNode& node) {
    if (node.module->type() != Normalise::kType || plan_.inputs.size() != 1 || node.inputs.front() != 0 ||
        !normaliser_.empty())
      return false;
    normaliser_ = node.name;
    for (const auto& other : plan_.nodes)
      if (&other != &node && std::ranges::find(other.inputs, 0U) != other.inputs.end())
        problems_.add("layer " + other.name,
                      "it reads the input as it is, which is normalised for all there");
    values_.push_back(values_.front());
    return true;
  }

  void add(const muster::detail::NetworkNode& node) {
    const Value first = values_[node.inputs.front()];
    auto written = writeNode(node, first.form, training_, problems_);
    if (written.empty()) {  // only the form changes
      const Form form = node.output.rank() == 3 ? Form::Image : Form::Rows;
      const bool changed = first.form != form;
      values_.push_back(
          {first.name, form, first.from, changed && form == Form::Image ? node.output : first.shape});
      return;
    }
    std::vector<std::string> inputs;
    for (const std::size_t input : node.inputs) inputs.push_back(values_[input].name);
    Form form = Form::Rows;
    for (std::size_t i = 0; i < written.size(); ++i) {
      auto& layer = written[i];
      if (node.module->type() == BatchNorm::kType && i == 0) keepLogarithms(layer);
      if (node.settings.frozen && layer.isLayer && !layer.variables.empty())
        layer.json = frozen(std::move(layer.json));
      json::value before = nullptr;
      if (i == 0) before = preprocessorBefore(layer, node, first);
      form = layer.gives;
      std::string name = layer.name;
      placed_.push_back({std::move(layer), std::move(before), std::exchange(inputs, {name})});
    }
    values_.push_back({inputs.front(), form, form, node.output});
  }

  json::value preprocessorBefore(const WrittenLayer& layer, const muster::detail::NetworkNode& node,
                                 const Value& value) {
    if (layer.isLayer)
      return detail::preprocessorOf(value.from, layer.takes, value.shape, "layer " + layer.name, problems_);
    for (const std::size_t input : node.inputs)
      if (values_[input].from != values_[input].form || values_[input].form == Form::Steps)
        problems_.add("vertex " + layer.name,
                      "it reads a value whose form changes, which only layers do there");
    return nullptr;
  }

  /// A batch normalisation whose variances are still those of a file gets the file's own numbers.
  void keepLogarithms(WrittenLayer& layer) {
    if (keptLogarithms(network_, layer.name + ".variance") == nullptr) return;
    layer.json["useLogStd"] = true;
    layer.variables.back() = "log10stdev";
  }

  /// Layers before it are trained, as here.
  static json::object frozen(json::object inner) {
    json::object there{{"@class", "org.deeplearning4j.nn.conf.layers.misc.FrozenLayerWithBackprop"}};
    there["constraints"] = nullptr;
    there["layerName"] = inner["layerName"];
    there["underlying"] = std::move(inner);
    return there;
  }

  Network& network_;
  const NetworkPlan& plan_;
  const TrainingOptions& training_;
  Problems& problems_;
  std::vector<Value> values_;  // [value of the plan]
  std::vector<Placed> placed_;
  std::string normaliser_;
};

json::object configurationOf(json::value layer, std::uint64_t seed,
                             const std::vector<std::string>& variables) {
  return {{"cacheMode", "NONE"},
          {"dataType", "FLOAT"},
          {"epochCount", 0},
          {"iterationCount", 0},
          {"layer", std::move(layer)},
          {"maxNumLineSearchIterations", 5},
          {"miniBatch", true},
          {"minimize", true},
          {"optimizationAlgo", "STOCHASTIC_GRADIENT_DESCENT"},
          {"seed", static_cast<std::int64_t>(seed)},
          {"stepFunction", nullptr},
          {"variables", json::array(variables.begin(), variables.end())}};
}

/// What chains and graphs have in common.
json::object commonOf(Network& network) {
  return {{"backpropType", "Standard"},
          {"cacheMode", "NONE"},
          {"dataType", "FLOAT"},
          {"epochCount", network.epoch()},
          {"inferenceWorkspaceMode", "ENABLED"},
          {"iterationCount", network.iteration()},
          {"tbpttBackLength", 20},
          {"tbpttFwdLength", 20},
          {"trainingWorkspaceMode", "ENABLED"},
          {"validateOutputLayerConfig", true}};
}

json::object chainOf(Network& network, const NetworkPlan& plan, const NetworkWriter& writer,
                     std::uint64_t seed, Problems& problems) {
  json::object chain = commonOf(network);
  json::array confs;
  json::object preprocessors;
  for (const auto& [written, preprocessor, inputs] : writer.layers()) {
    if (!written.isLayer)
      problems.add("layer " + written.name,
                   "there it is a vertex, which only a graph has: make a graph of it first");
    if (!preprocessor.is_null()) preprocessors[std::to_string(confs.size())] = preprocessor;
    confs.push_back(configurationOf(written.json, seed, written.variables));
  }
  if (writer.changesForm(plan.outputs.front().value)) problems.add({}, "a change of form at the end");
  chain["confs"] = std::move(confs);
  chain["inputPreProcessors"] = std::move(preprocessors);
  return chain;
}

json::object graphOf(Network& network, const NetworkPlan& plan, const NetworkWriter& writer,
                     std::uint64_t seed, Problems& problems) {
  json::object graph = commonOf(network), vertices, reads;
  json::array inputs, outputs, order, names;
  for (const auto& input : plan.inputs) inputs.emplace_back(input.name);
  for (const auto& input : plan.inputs) names.emplace_back(input.name);
  for (const auto& [written, preprocessor, from] : writer.layers()) {
    json::object vertex = written.json;
    if (written.isLayer)
      vertex = {{"@class", "org.deeplearning4j.nn.conf.graph.LayerVertex"},
                {"layerConf", configurationOf(written.json, seed, written.variables)},
                {"preProcessor", preprocessor}};
    vertices[written.name] = std::move(vertex);
    reads[written.name] = json::array(from.begin(), from.end());
    names.emplace_back(written.name);
  }
  for (const auto& output : plan.outputs) {
    if (writer.changesForm(output.value))
      problems.add("output " + output.name, "a change of form at the end");
    outputs.emplace_back(writer.nameOf(output.value));
    const double own = output.head ? output.head->weight : 1;
    if (output.weight != own)
      problems.add("output " + output.name, fmt::format("a weight of {}", output.weight / own));
  }
  for (std::size_t i = 0; i < names.size(); ++i) order.emplace_back(i);
  graph["defaultConfiguration"] = configurationOf(nullptr, seed, {});
  graph["networkInputs"] = std::move(inputs);
  graph["networkOutputs"] = std::move(outputs);
  graph["topologicalOrder"] = std::move(order);
  graph["topologicalOrderStr"] = std::move(names);
  graph["vertexInputs"] = std::move(reads);
  graph["vertices"] = std::move(vertices);
  return graph;
}

std::uint64_t seedOf(const Network& network) {
  if (const auto* chain = dynamic_cast<const MultiLayerNetwork*>(&network))
    return chain->configuration().seed;
  return dynamic_cast<const ComputationGraph&>(network).configuration().seed;
}

/// The configuration as JSON. @param normaliser  gets the name of the network's Normalise, if it has one.
std::string configurationOf(Network& network, const NetworkPlan& plan, std::string& normaliser) {
  Problems problems;
  const TrainingOptions& training = network.trainingOptions();
  if (training.clipNorm != 0) problems.add({}, "clipNorm, a norm of all gradients together");
  const NetworkWriter writer(network, plan, problems);
  const std::uint64_t seed = seedOf(network);
  const bool chain = dynamic_cast<const MultiLayerNetwork*>(&network) != nullptr;
  normaliser = writer.normaliser();
  const json::object all =
      chain ? chainOf(network, plan, writer, seed, problems) : graphOf(network, plan, writer, seed, problems);
  require(problems.empty(), "dl4j::save: Deeplearning4j does not have {}", problems.text());
  if (training.accumulate > 1)
    logWarning("dl4j::save: accumulate {} is left out; Deeplearning4j takes a step for each batch",
               training.accumulate);
  return printJson(all);
}

std::string arrayOf(const std::vector<float>& values) {
  std::string bytes;
  writeArray(bytes, values);
  return bytes;
}

/// The bytes of the file's normaliser.
std::string normaliserOf(Network& network, const NetworkPlan& plan, const std::string& name) {
  Normaliser normaliser;
  for (const auto& node : plan.nodes)
    if (node.name == name)
      if (const auto options = optionsOf<Normalise>(node)) normaliser.method = options->method;
  for (const auto& block : network.blocks())
    for (const auto& [tensor, numbers] :
         {std::pair(name + ".shift", &normaliser.shift), std::pair(name + ".scale", &normaliser.scale)})
      if (block.kind == BlockKind::Statistics && block.segments->find(tensor) != nullptr) {
        const Tensor here = copyTo(block.segment(tensor), Device::cpu());
        numbers->assign(here.span<float>().begin(), here.span<float>().end());
      }
  for (const float scale : normaliser.scale) require(scale != 0, "dl4j::save: {} was never fitted", name);
  return writeNormaliser(normaliser);
}

/// The shapes of the inputs, which Deeplearning4j's own files leave open.
std::string shapesOf(const NetworkPlan& plan) {
  json::array shapes;
  for (const auto& input : plan.inputs) {
    json::array shape;
    for (const std::int64_t size : input.stated) shape.emplace_back(size);
    shapes.emplace_back(std::move(shape));
  }
  return json::serialize(json::object{{"inputShapes", std::move(shapes)}});
}

}  // namespace

void save(Network& network, const std::filesystem::path& path) {
  muster::detail::onFile("dl4j::save", path, [&] {
    require(network.initialized(), "dl4j::save: the network is not initialised; call init()");
    network.context().synchronize();
    const NetworkPlan plan = muster::detail::NetworkProbe::layOut(network);
    std::string normaliser;
    const std::string configuration = configurationOf(network, plan, normaliser);
    // What it says is read again: the order of the parameters follows from it.
    Problems problems;
    const Description description = describe(configuration, problems);
    std::vector<Shape> shapes;
    for (const auto& input : plan.inputs) shapes.push_back(input.stated);
    const Conversion again = convert(description, shapes, {}, problems);
    const FlatState flat(again);
    std::vector<std::pair<std::string, std::string>> files{
        {"configuration.json", configuration}, {"coefficients.bin", arrayOf(flat.takeParameters(network))}};
    if (flat.stateCount() > 0) files.emplace_back("updaterState.bin", arrayOf(flat.takeState(network)));
    if (!normaliser.empty()) files.emplace_back("normalizer.bin", normaliserOf(network, plan, normaliser));
    files.emplace_back("muster.json", shapesOf(plan));
    writeZip(path, files);
  });
}

}  // namespace muster::dl4j
