#include "muster/core/base/error.h"
#include "muster/core/io/detail/layer_json.h"
#include "muster/core/io/json_fields.h"
#include "muster/core/nn/multi_layer_network.h"

namespace muster {
namespace {

constexpr std::string_view kFormat = "muster.MultiLayerConfiguration";
constexpr std::int64_t kVersion = 1;

/// All but the layers, in the order of the file.
void visit(MultiLayerConfiguration& configuration, Fields& f) {
  f.field("seed", configuration.seed);
  configuration.updater.field("updater", f);
  f.field("l1", configuration.l1);
  f.field("l2", configuration.l2);
  f.field("weightDecay", configuration.weightDecay);
  f.field("clipNorm", configuration.clipNorm);
  f.field("clipValue", configuration.clipValue);
  f.field("inputShape", configuration.inputShape);
}

void writeLayer(const Layer& layer, JsonWriter& writer) {
  const auto module = layer.module().clone();  // a visit takes its fields by reference
  writer.put("type", module->type());
  module->fields(writer);
}

Layer readLayer(JsonReader& reader) {
  std::string type;
  reader.requireField("type");
  reader.field("type", type);
  std::shared_ptr<Module> module = Layer::registry().make(type);
  module->fields(reader);
  return Layer(std::move(module));
}

}  // namespace

std::string detail::layerJson(const Layer& layer) {
  JsonWriter writer;
  writeLayer(layer, writer);
  return writer.line();
}

std::string MultiLayerConfiguration::toJson() const {
  JsonWriter writer;
  writer.put("format", kFormat);
  writer.put("version", kVersion);
  MultiLayerConfiguration copy = *this;
  visit(copy, writer);
  writer.list("layers", layers.size(),
              [&](std::size_t i, JsonWriter& layer) { writeLayer(layers[i], layer); });
  return writer.text();
}

MultiLayerConfiguration MultiLayerConfiguration::fromJson(std::string_view json) {
  JsonReader reader(json);
  for (const auto name : {"format", "version", "layers"}) reader.requireField(name);
  std::string format;
  std::int64_t version = 0;
  reader.field("format", format);
  require(format == kFormat, "format: expected \"{}\", found \"{}\"", kFormat, format);
  reader.field("version", version);
  require(version == kVersion, "version: this library reads version {}, found {}", kVersion, version);

  MultiLayerConfiguration configuration;
  visit(configuration, reader);
  reader.list("layers", [&](JsonReader& layer) { configuration.layers.push_back(readLayer(layer)); });
  reader.finish();
  return configuration;
}

}  // namespace muster
