#include <boost/json.hpp>

#include "muster/core/io/detail/schema_writer.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/core/nn/user_layer.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

MultiLayerConfiguration everyLayer() {
  return {
      .seed = std::numeric_limits<std::uint64_t>::max(),
      .updater =
          Nesterovs{.learningRate = WarmUpSchedule{.iterations = 50, .then = CosineSchedule{.initial = 0.1}},
                    .momentum = 0.9},
      .l1 = 1e-7,
      .l2 = 5e-4,
      .weightDecay = 0.1 + 0.2,
      .clipNorm = 1.0 / 3,
      .clipValue = 2,
      .inputShape = {3, 28, 28},
      .layers = {Conv2d{.outChannels = 21,
                        .kernel = {5, 3},
                        .stride = {2, 1},
                        .padding = {1, 2},
                        .dilation = {1, 2},
                        .groups = 3,
                        .activation = Activation::LeakyReLU,
                        .init = Init::normal(0.01),
                        .bias = false,
                        .name = "first"},
                 ActivationLayer{.activation = Activation::Tanh}, MaxPool2d{.kernel = {2, 2}},
                 AveragePool2d{.kernel = {2, 2}, .stride = {1, 1}}, GlobalPool2d{.kind = PoolKind::Max},
                 Flatten{}, Dense{.units = 30, .init = Init::he()}, Dropout{.rate = 0.25},
                 Output{.classes = 4, .loss = Loss::MeanSquaredError, .activation = Activation::Sigmoid}}};
}

/// A user's layer whose fields have names of fields of the library.
struct Damped : UserLayer<CopyProgram> {
  static constexpr std::string_view kType = "damped";
  double momentum = 2;
  Shape kernel = {4};
  void fields(Fields& f) {
    f.field("momentum", momentum, "of any size");
    f.field("kernel", kernel, "number of elements", "[4, 8)");
  }
};

std::string problemOf(const std::string& json) {
  return thrown<InvalidArgument>([&] { MultiLayerConfiguration::fromJson(json); });
}

/// A configuration with these lines inside.
std::string with(const std::string& fields, const std::string& layers = "[]") {
  return R"({"format": "muster.MultiLayerConfiguration", "version": 1, )" + fields + R"("layers": )" +
         layers + "}";
}

TEST_CASE("a configuration is written to JSON and read back") {
  const auto written = everyLayer();
  const std::string text = written.toJson();
  const auto read = MultiLayerConfiguration::fromJson(text);
  CHECK(read.toJson() == text);
  CHECK(read.seed == written.seed);
  CHECK(textOf(read.l1, read.l2, read.weightDecay, read.clipNorm, read.clipValue) ==
        textOf(1e-7, 5e-4, 0.1 + 0.2, 1.0 / 3, 2));
  CHECK(read.inputShape == Shape{3, 28, 28});
  CHECK(textOf(read.updater.type(), read.updater.learningRate().type()) == "nesterovs warmup");
  CHECK(read.updater.learningRate().at(49) == written.updater.learningRate().at(49));
  REQUIRE(read.layers.size() == 9);
  CHECK(read.layers[0].module().name() == "first");
  CHECK(read.layers[0].module().outputShape(std::vector<Shape>{{3, 28, 28}}) ==
        written.layers[0].module().outputShape(std::vector<Shape>{{3, 28, 28}}));
  CHECK(read.layers[8].module().lossHead()->loss == Loss::MeanSquaredError);
}

TEST_CASE("a configuration written by hand is read") {
  const auto read = MultiLayerConfiguration::fromJson(R"({
    "format": "muster.MultiLayerConfiguration", "version": 1, "seed": 123,
    "updater": {"type": "adam", "learningRate": {"type": "fixed", "value": 0.001}, "beta1": 0.8},
    "inputShape": [1, 28, 28],
    "layers": [{"type": "conv2d", "outChannels": 20, "kernel": [5, 5]},
               {"type": "output", "classes": 10}]})");
  CHECK(textOf(read.seed, read.l2, read.updater.type(), read.updater.learningRate().at(7)) ==
        "123 0 adam 0.001");
  CHECK(read.layers[0].module().outputShape(std::vector<Shape>{{1, 28, 28}}) == Shape{20, 24, 24});
}

TEST_CASE("a learning rate may be a number, and an updater its type") {
  const auto read = [](const std::string& updater) {
    const auto all = MultiLayerConfiguration::fromJson(with(R"("updater": )" + updater + ", "));
    const Schedule& rate = all.updater.learningRate();
    return textOf(all.updater.type(), rate.type(), rate.at(0));
  };
  CHECK(read(R"({"type": "adam", "learningRate": 0.25})") == "adam fixed 0.25");
  CHECK(read(R"({"type": "sgd", "learningRate": {"type": "warmup", "iterations": 4, "then": 2}})") ==
        "sgd warmup 0.5");  // a quarter of 2
  CHECK(read(R"("adam")") == "adam fixed 0.001");
  CHECK(problemOf(with(R"("updater": 0.1, )")) == "updater: expected an object, found 0.1");
  CHECK(problemOf(with(R"("updater": "adm", )"))
            .starts_with("updater: updater: there is no type \"adm\"; there are "));
}

TEST_CASE("mistakes in a configuration are reported with their path") {
  CHECK(problemOf(with("")) == "");
  CHECK(problemOf("{}") ==
        "format: is missing or empty; it is \"muster.MultiLayerConfiguration\" for a chain of layers, "
        "\"muster.ComputationGraphConfiguration\" for a graph");
  CHECK(problemOf(R"({"format": "muster.MultiLayerConfiguration", "version": 1})") == "layers: is missing");
  CHECK(problemOf(R"({"format": "other", "version": 1, "layers": []})") ==
        "format: expected \"muster.MultiLayerConfiguration\", found \"other\"");
  CHECK(problemOf(R"({"format": "muster.MultiLayerConfiguration", "version": 2, "layers": []})") ==
        "version: this library reads version 1, found 2");
  CHECK(problemOf(with(R"("sede": 1, )"))
            .starts_with("sede: there is no such field; the nearest is seed, of format, "));
  CHECK(problemOf(with(R"("l2": "much", )")) == "l2: expected a number, found the string \"much\"");
  CHECK(problemOf(with("", R"([{"type": "flatten"}, {"type": "conv3d"}])"))
            .starts_with("layers[1]: layer: there is no type \"conv3d\"; there are "));
  CHECK(problemOf(with("", R"([{"units": 3}])")) == "layers[0].type: is missing");
  CHECK(problemOf(
            with("", R"([{"type": "flatten"}, {"type": "flatten"}, {"type": "conv2d", "kernal": [5, 5]}])"))
            .starts_with("layers[2].kernal: there is no such field; the nearest is kernel, of type, name, "
                         "outChannels, kernel, "));
  CHECK(problemOf(with("", R"([{"type": "dense", "activation": "rellu"}])"))
            .starts_with("layers[0].activation: there is no \"rellu\"; the nearest is relu, of identity, "));
  CHECK(problemOf("{\n\"format\": ").starts_with("not valid JSON at line 2, column "));
}

TEST_CASE("a schema has the range that a field is described with, not that of another field of its name") {
  detail::SchemaWriter schema;
  Layer(Damped{}).module().clone()->fields(schema);
  CHECK(boost::json::value(schema.properties()) == boost::json::parse(R"({
    "momentum": {"type": "number", "default": 2.0, "description": "of any size"},
    "kernel": {"type": ["integer", "array"], "default": [4], "description": "number of elements",
               "minimum": 4, "exclusiveMaximum": 8, "minItems": 1, "maxItems": 1,
               "items": {"type": "integer", "minimum": 4, "exclusiveMaximum": 8}}})"));
}

}  // namespace
}  // namespace muster::test
