#include "muster/core/base/error.h"
#include "muster/core/io/detail/layer_json.h"
#include "muster/core/io/detail/network_json.h"
#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/multi_layer_network.h"

namespace muster {
namespace {

constexpr std::string_view kChainFormat = "muster.MultiLayerConfiguration";
constexpr std::string_view kGraphFormat = "muster.ComputationGraphConfiguration";
constexpr std::int64_t kVersion = 1;

/// A network's training options, in the order of the file.
template <typename Configuration>
void visitTraining(Configuration& configuration, Fields& f) {
  f.field("seed", configuration.seed);
  configuration.updater.field("updater", f);
  f.field("l1", configuration.l1);
  f.field("l2", configuration.l2);
  f.field("weightDecay", configuration.weightDecay);
  f.field("clipNorm", configuration.clipNorm);
  f.field("clipValue", configuration.clipValue);
}

/// Omits the default 1, so that files without the option do not change.
template <typename Configuration>
void writeAccumulate(const Configuration& configuration, JsonWriter& writer) {
  if (configuration.accumulate != 1) writer.put("accumulate", configuration.accumulate);
}

void writeHead(std::string_view format, JsonWriter& writer) {
  writer.put("format", format);
  writer.put("version", kVersion);
}

void readHead(std::string_view expected, JsonReader& reader) {
  for (const auto name : {"format", "version"}) reader.requireField(name);
  std::string format;
  std::int64_t version = 0;
  reader.field("format", format);
  require(format == expected, "format: expected \"{}\", found \"{}\"", expected, format);
  reader.field("version", version);
  require(version == kVersion, "version: this library reads version {}, found {}", kVersion, version);
}

}  // namespace

void detail::writeLayer(const Layer& layer, JsonWriter& writer) {
  const auto module = layer.module().clone();  // `fields` needs a mutable module
  writer.put("type", module->type());
  module->fields(writer);
  if (layer.settings().learningRate != 1) writer.put("learningRate", layer.settings().learningRate);
  if (layer.settings().frozen) writer.put("frozen", true);
  if (layer.settings().device) writer.put("device", std::string_view(layer.settings().device->toString()));
}

Layer detail::readLayer(JsonReader& reader) {
  std::string type;
  reader.requireField("type");
  reader.field("type", type);
  std::shared_ptr<Module> module = Layer::registry().make(type);
  module->fields(reader);
  LayerSettings settings;
  reader.field("learningRate", settings.learningRate);
  reader.field("frozen", settings.frozen);
  std::string device;
  reader.field("device", device);
  if (!device.empty()) settings.device = Device::parse(device);
  const Layer layer(std::move(module), settings);
  return layer.learningRate(settings.learningRate);  // checks the value
}

std::string MultiLayerConfiguration::toJson() const {
  JsonWriter writer;
  writeHead(kChainFormat, writer);
  MultiLayerConfiguration copy = *this;
  visitTraining(copy, writer);
  writeAccumulate(copy, writer);
  writer.field("inputShape", copy.inputShape);
  writer.list("layers", layers.size(),
              [&](std::size_t i, JsonWriter& layer) { detail::writeLayer(layers[i], layer); });
  return writer.text();
}

MultiLayerConfiguration MultiLayerConfiguration::fromJson(std::string_view json) {
  JsonReader reader(json);
  readHead(kChainFormat, reader);
  reader.requireField("layers");
  MultiLayerConfiguration configuration;
  visitTraining(configuration, reader);
  reader.field("accumulate", configuration.accumulate);
  reader.field("inputShape", configuration.inputShape);
  reader.list("layers", [&](JsonReader& layer) { configuration.layers.push_back(detail::readLayer(layer)); });
  reader.finish();
  return configuration;
}

std::string ComputationGraphConfiguration::toJson() const {
  JsonWriter writer;
  writeHead(kGraphFormat, writer);
  ComputationGraphConfiguration copy = *this;
  visitTraining(copy, writer);
  writeAccumulate(copy, writer);
  writer.list("inputs", inputs.size(), [&](std::size_t i, JsonWriter& input) {
    input.put("name", inputs[i].name);
    input.field("shape", copy.inputs[i].shape);
  });
  writer.list("vertices", vertices.size(), [&](std::size_t i, JsonWriter& vertex) {
    vertex.put("vertex", vertices[i].name);
    vertex.put("inputs", std::span<const std::string>(vertices[i].inputs));
    detail::writeLayer(vertices[i].layer, vertex);
  });
  writer.list("outputs", outputs.size(), [&](std::size_t i, JsonWriter& output) {
    output.put("name", outputs[i].name);
    output.put("weight", outputs[i].weight);
  });
  return writer.text();
}

ComputationGraphConfiguration ComputationGraphConfiguration::fromJson(std::string_view json) {
  JsonReader reader(json);
  readHead(kGraphFormat, reader);
  for (const auto name : {"inputs", "vertices", "outputs"}) reader.requireField(name);
  ComputationGraphConfiguration configuration;
  visitTraining(configuration, reader);
  reader.field("accumulate", configuration.accumulate);
  reader.list("inputs", [&](JsonReader& input) {
    GraphInput read;
    input.requireField("name");
    input.field("name", read.name);
    input.field("shape", read.shape);
    configuration.inputs.push_back(std::move(read));
  });
  reader.list("vertices", [&](JsonReader& vertex) {
    std::string name;
    std::vector<std::string> sources;
    for (const auto field : {"vertex", "inputs"}) vertex.requireField(field);
    vertex.field("vertex", name);
    vertex.strings("inputs", sources);
    configuration.vertices.push_back(
        {.name = std::move(name), .layer = detail::readLayer(vertex), .inputs = std::move(sources)});
  });
  reader.list("outputs", [&](JsonReader& output) {
    GraphOutput read;
    output.requireField("name");
    output.field("name", read.name);
    output.field("weight", read.weight);
    configuration.outputs.push_back(std::move(read));
  });
  reader.finish();
  return configuration;
}

std::unique_ptr<Network> detail::networkFromJson(std::string_view json) {
  JsonReader reader(json);
  std::string format;
  reader.field("format", format);
  if (format == kGraphFormat)
    return std::make_unique<ComputationGraph>(ComputationGraphConfiguration::fromJson(json));
  return std::make_unique<MultiLayerNetwork>(MultiLayerConfiguration::fromJson(json));
}

}  // namespace muster
