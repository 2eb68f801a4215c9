#include "muster/core/base/size2d.h"

#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/test.h"

using namespace muster;

namespace {

/// The shape of one layer's output.
Shape outputOf(const Layer& layer, const Shape& input = {1, 28, 28}) {
  return MultiLayerNetwork({.inputShape = input, .layers = {layer}}).outputShapes().back().second;
}

MultiLayerConfiguration read(const std::string& layer) {
  return MultiLayerConfiguration::fromJson(
      R"({"format": "muster.MultiLayerConfiguration", "version": 1, "inputShape": [1, 28, 28], "layers": [)" +
      layer + "]}");
}

}  // namespace

TEST_CASE("one number is both sizes, in every layer with a pair") {
  CHECK(outputOf(Conv2d{.outChannels = 3, .kernel = 3, .padding = 1}) == Shape{3, 28, 28});
  CHECK(outputOf(Conv2d{.outChannels = 3, .kernel = {3}, .stride = 2}) == Shape{3, 13, 13});
  CHECK(outputOf(Conv2d{.outChannels = 3, .kernel = 3, .dilation = 2}) == Shape{3, 24, 24});
  CHECK(outputOf(Conv2d{.outChannels = 3, .kernel = {3, 5}, .padding = {1, 2}}) == Shape{3, 28, 28});
  CHECK(outputOf(ConvTranspose2d{.outChannels = 2, .kernel = 2, .stride = 2}) == Shape{2, 56, 56});
  CHECK(outputOf(
            ConvTranspose2d{.outChannels = 2, .kernel = 3, .stride = 2, .padding = 1, .outputPadding = 1}) ==
        Shape{2, 56, 56});
  CHECK(outputOf(MaxPool2d{.kernel = 3, .stride = 1, .padding = 1}) == Shape{1, 28, 28});
  CHECK(outputOf(MaxPool2d{.kernel = 4}) == Shape{1, 7, 7});
  CHECK(outputOf(AveragePool2d{.kernel = 2, .stride = 2}) == Shape{1, 14, 14});
  CHECK(outputOf(Upsample2d{.scale = 3}) == Shape{1, 84, 84});
  CHECK(outputOf(ZeroPad2d{1}) == Shape{1, 30, 30});
  CHECK(outputOf(ZeroPad2d{.padding = {1, 0, 0, 2}}) == Shape{1, 29, 30});
}

TEST_CASE("a stride of 0 in one direction only is refused") {
  const auto refusal = [](const Layer& layer) {
    return test::thrown<InvalidArgument>([&] { outputOf(layer); });
  };
  CHECK(refusal(MaxPool2d{.stride = {1, 0}}) ==
        "layer 0: maxpool2d: a stride of 0 is the kernel's size in both directions, got [1, 0]");
  CHECK_CONTAINS(refusal(AveragePool2d{.stride = {0, 2}}), "got [0, 2]");
  CHECK_CONTAINS(refusal(Conv2d{.outChannels = 1, .stride = {1, 0}}), "at least 1");
  CHECK(refusal(MaxPool2d{}).empty());
}

TEST_CASE("files take one number or an array, and refuse another count") {
  const auto configuration = read(R"({"type": "conv2d", "outChannels": 3, "kernel": 3, "padding": 1})");
  CHECK(MultiLayerNetwork(configuration).outputShapes()[0].second == Shape{3, 28, 28});
  CHECK_CONTAINS(configuration.toJson(), "\"padding\": [1, 1]");
  CHECK(MultiLayerNetwork(read(R"({"type": "zeropad2d", "padding": 1})")).outputShapes()[0].second ==
        Shape{1, 30, 30});
  const auto refusal = [](const std::string& value) {
    return test::thrown<InvalidArgument>(
        [&] { read(R"({"type": "conv2d", "outChannels": 3, "kernel": )" + value + "}"); });
  };
  CHECK(refusal("[3]") == "layers[0]: kernel: expected 2 numbers, got [3]");
  CHECK_CONTAINS(refusal("[3, 3, 3]"), "expected 2 numbers");
  CHECK_CONTAINS(refusal("3.5"), "a whole number or an array");
  CHECK_CONTAINS(refusal("-1"), "a whole number or an array");
}
