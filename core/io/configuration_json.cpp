#include <boost/json/array.hpp>
#include <tuple>
#include <type_traits>

#include "muster/core/base/error.h"
#include "muster/core/base/nearest_word.h"
#include "muster/core/io/detail/layer_json.h"
#include "muster/core/io/detail/network_schema.h"
#include "muster/core/io/detail/schema_writer.h"
#include "muster/core/io/network_json.h"
#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/layers.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/core/optim/schedules.h"
#include "muster/core/optim/updaters.h"

namespace muster {
namespace {

namespace json = boost::json;
using detail::schemaOfTypes, detail::SchemaFamilies, detail::SchemaWriter;

constexpr std::string_view kChainFormat = "muster.MultiLayerConfiguration";
constexpr std::string_view kGraphFormat = "muster.ComputationGraphConfiguration";
constexpr std::int64_t kConfigurationVersion = 1;

/// A network's training options, in the order of the file.
template <typename Configuration>
void visitTraining(Configuration& configuration, Fields& f) {
  f.field("seed", configuration.seed, "of the initial weights and of dropout");
  f.field("updater", configuration.updater,
          "how gradients change the parameters: a name, or a type and its options");
  f.field("l1", configuration.l1, "adds l1 times the sum of the weights without sign to the score", "[0, )");
  f.field("l2", configuration.l2, "adds l2 / 2 times the sum of the squared weights to the score", "[0, )");
  f.field("weightDecay", configuration.weightDecay, "each step weights lose learning rate * weightDecay * w",
          "[0, )");
  f.field("clipNorm", configuration.clipNorm, "scales the whole gradient down to this Euclidean norm; 0: off",
          "[0, )");
  f.field("clipValue", configuration.clipValue,
          "clamps each element of the gradient to plus or minus this; 0: off", "[0, )");
}

/// Omits the default 1, so that files without the option do not change.
template <typename Configuration>
void writeAccumulate(const Configuration& configuration, JsonWriter& writer) {
  if (configuration.accumulate != 1) writer.put("accumulate", configuration.accumulate);
}

void writeHead(std::string_view format, JsonWriter& writer) {
  writer.put("format", format);
  writer.put("version", kConfigurationVersion);
}

void readHead(std::string_view expected, JsonReader& reader) {
  std::string format;
  std::int64_t version = 0;
  reader.field("format", format);
  require(!format.empty(),
          "format: is missing or empty; it is \"{}\" for a chain of layers, \"{}\" for a graph", kChainFormat,
          kGraphFormat);
  reader.requireField("version");
  require(format == expected, "format: expected \"{}\", found \"{}\"", expected, format);
  reader.field("version", version);
  require(version == kConfigurationVersion, "version: this library reads version {}, found {}",
          kConfigurationVersion, version);
}

/// Visits the settings that every layer has, whatever its type.
void visitSettings(LayerSettings& settings, std::string& device, Fields& f) {
  f.field("learningRate", settings.learningRate,
          "factor of the network's learning rate for this layer, at least 0", "[0, )");
  f.field("frozen", settings.frozen, "the layer is not trained, and runs as in evaluation");
  f.field("device", device, "device of this layer, as in cuda:1; empty: the network's");
}

using TypeSchemas = std::vector<std::pair<std::string, json::object>>;

template <typename... T>
std::vector<std::string> typesIn(std::type_identity<std::tuple<T...>>) {
  return {std::string(T::kType)...};
}

/// The schema of each type, by the fields that the object visits which the registry makes.
template <typename Interface>
TypeSchemas schemasOf(const Registry<Interface>& registry, const std::vector<std::string>& types,
                      const SchemaFamilies& families) {
  TypeSchemas all;
  for (const auto& type : types) {
    SchemaWriter writer(&families);
    writer.put("type", {});
    registry.make(type)->fields(writer);
    all.emplace_back(type, writer.schema());
  }
  return all;
}

TypeSchemas initialiserSchemas() {
  TypeSchemas all;
  for (const auto& [kind, name] : EnumNames<InitKind>::kNames) {
    SchemaWriter writer;
    Init{kind}.field("of", writer);
    all.emplace_back(name, writer.properties().at("of").as_object());
  }
  return all;
}

/// The layers of a chain or, with their names and inputs, the vertices of a graph.
json::object layerSchema(const SchemaFamilies& families, bool vertices) {
  TypeSchemas all;
  for (const auto& type : typesIn(std::type_identity<detail::LibraryLayers>())) {
    const auto module = Layer::registry().make(type);
    if (!vertices && !module->takesOneInput()) continue;
    SchemaWriter writer(&families);
    writer.put("type", {});
    if (vertices) {
      writer.describe("name, by which others read it");
      writer.put("vertex", {{"type", "string"}});
      writer.describe("names of the vertices and inputs that it reads");
      writer.put("inputs", {{"type", "array"}, {"items", json::object{{"type", "string"}}}});
    }
    module->fields(writer);
    LayerSettings settings;
    std::string device;
    visitSettings(settings, device, writer);
    all.emplace_back(type, writer.schema());
  }
  auto schema = schemaOfTypes("type", "the kind of layer", all);
  if (vertices) schema["required"] = json::array{"type", "vertex", "inputs"};
  return schema;
}

/// The fields of both formats.
template <typename Configuration>
void describeHead(SchemaWriter& writer) {
  writer.put("format", {});
  writer.describe("of the format");
  writer.put("version", {{"const", kConfigurationVersion}});
  Configuration configuration;
  visitTraining(configuration, writer);
  writer.field("accumulate", configuration.accumulate, "batches whose gradients make one step",
               "[1, 1048576]");
}

json::object listOf(json::object items) {
  return {{"type", "array"}, {"items", std::move(items)}, {"minItems", 1}};
}

json::object chainSchema(const SchemaFamilies& families) {
  SchemaWriter writer(&families);
  describeHead<MultiLayerConfiguration>(writer);
  Shape inputShape;
  writer.field("inputShape", inputShape,
               "of one example: [C, H, W], [T, F] or [F]; empty: that of the data; 0: any size", "[0, )");
  writer.describe("in order; the last one is an output");
  writer.put("layers", listOf({{"$ref", "#/$defs/layer"}}));
  auto schema = writer.schema();
  schema["required"] = json::array{"format", "version", "layers"};
  return schema;
}

json::object graphSchema(const SchemaFamilies& families) {
  SchemaWriter input, output, writer(&families);
  GraphInput anInput;
  input.describe("name, by which vertices read it");
  input.put("name", {{"type", "string"}});
  input.field("shape", anInput.shape, "of one example; empty: that of the data", "[0, )");
  GraphOutput anOutput;
  output.describe("of the vertex");
  output.put("name", {{"type", "string"}});
  output.field("weight", anOutput.weight, "factor of its loss in the score", "[0, )");
  const auto named = [](const SchemaWriter& fields) {
    auto schema = fields.schema();
    schema["required"] = json::array{"name"};
    return schema;
  };
  describeHead<ComputationGraphConfiguration>(writer);
  writer.describe("what a batch has");
  writer.put("inputs", listOf(named(input)));
  writer.describe("layers, each with a name and the names of what it reads");
  writer.put("vertices", listOf({{"$ref", "#/$defs/vertex"}}));
  writer.describe("the vertices whose losses make the score");
  writer.put("outputs", listOf(named(output)));
  auto schema = writer.schema();
  schema["required"] = json::array{"format", "version", "inputs", "vertices", "outputs"};
  return schema;
}

}  // namespace

detail::NetworkSchema detail::networkSchema() {
  const auto schedules = typesIn(std::type_identity<LibrarySchedules>());
  const auto updaters = typesIn(std::type_identity<LibraryUpdaters>());
  SchemaFamilies families;
  for (const auto& type : schedules) families[type] = "schedule";
  for (const auto& type : updaters) families[type] = "updater";
  for (const auto& [kind, name] : EnumNames<InitKind>::kNames) families[std::string(name)] = "initialiser";
  auto network = schemaOfTypes("format", "a chain of layers, or a graph of named ones",
                               {{std::string(kChainFormat), chainSchema(families)},
                                {std::string(kGraphFormat), graphSchema(families)}});
  network["description"] = "the configuration of a model file: muster summary --json prints one";
  return {
      std::move(network),
      {{"schedule", schemaOfTypes("type", "how the value changes over the training",
                                  schemasOf(Schedule::registry(), schedules, families))},
       {"updater", schemaOfTypes("type", "the rule", schemasOf(Updater::registry(), updaters, families))},
       {"initialiser", schemaOfTypes("type", "the distribution", initialiserSchemas())},
       {"layer", layerSchema(families, /*vertices=*/false)},
       {"vertex", layerSchema(families, /*vertices=*/true)}},
      families,
  };
}

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
  std::shared_ptr<Module> module = makeByName(Layer::registry(), type);
  module->fields(reader);
  LayerSettings settings;
  std::string device;
  visitSettings(settings, device, reader);
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

std::unique_ptr<Network> networkFromJson(std::string_view json) {
  JsonReader reader(json);
  std::string format;
  reader.field("format", format);
  if (format == kGraphFormat)
    return std::make_unique<ComputationGraph>(ComputationGraphConfiguration::fromJson(json));
  return std::make_unique<MultiLayerNetwork>(MultiLayerConfiguration::fromJson(json));
}

}  // namespace muster
