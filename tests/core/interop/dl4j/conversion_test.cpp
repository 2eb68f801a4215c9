// Models of Deeplearning4j that the tests make themselves.
#include <fmt/ranges.h>

#include "muster/core/interop/dl4j/detail/description.h"
#include "muster/core/interop/dl4j/detail/zip_file.h"
#include "muster/core/interop/dl4j/dl4j.h"
#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/core/interop/dl4j/made_models.h"
#include "tests/support/arrays.h"
#include "tests/support/batch_of.h"
#include "tests/support/list_iterator.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

using Floats = std::vector<float>;

class Made {
 public:
  Made(const std::string& configuration, const Floats& values, const std::string& type = "FLOAT")
      : Made(ZipEntries{{"configuration.json", configuration},
                        {"coefficients.bin", arrayBytes(values, type)}}) {}
  explicit Made(const ZipEntries& entries) { dl4j::detail::writeZip(path, entries); }

  std::unique_ptr<Network> load(const std::vector<Shape>& shapes = {}) const {
    return dl4j::load(path, {.inputShapes = shapes});
  }
  /// The sentence with which it is refused, without the path.
  std::string refused(const std::vector<Shape>& shapes = {}) const {
    const std::string text = thrown<FileError>([&] { load(shapes); });
    const std::string start = path.string() + ": ";
    REQUIRE(text.starts_with(start));
    return text.substr(start.size());
  }

 private:
  TemporaryDirectory directory_;

 public:
  const std::filesystem::path path = directory_ / "model.zip";
};

Floats upTo(int count) {
  Floats values;
  for (int i = 1; i <= count; ++i) values.push_back(static_cast<float>(i));
  return values;
}

/// The first number that the network computes of one example.
float firstOutput(Network& network, const Tensor& example) {
  return network.output(example).data<float>()[0];
}

Tensor tensorOf(Network& network, const std::string& name) {
  for (const auto& block : network.blocks())
    if (block.kind != BlockKind::Gradients && block.segments->find(name)) return block.segment(name);
  return {};
}

Floats valuesOf(Network& network, const std::string& name) {
  return floatsOf(tensorOf(network, name));
}

constexpr const char* kElementWise =
    R"({"@class":"org.deeplearning4j.nn.conf.graph.ElementWiseVertex","op":"Add"})";

/// A layer without biases, with an Sgd of rate 0.5, of kernels and strides of this size.
std::string convJson(const std::string& className, int in, int out, int kernel, int stride,
                     const std::string& more = R"("padding":[0,0])") {
  return layerJson("c", className,
                   fmt::format(R"("nin":{},"nout":{},"hasBias":false,"kernelSize":[{},{}],"stride":[{},{}],)"
                               R"("iupdater":{{"@class":"org.nd4j.linalg.learning.config.Sgd",)"
                               R"("learningRate":0.5}},{})",
                               in, out, kernel, kernel, stride, stride, more));
}

/// What makes rows of images of this size.
std::string rowsOf(int channels, int size) {
  return fmt::format(
      R"("1":{{"@class":"org.deeplearning4j.nn.conf.preprocessor.CnnToFeedForwardPreProcessor",)"
      R"("inputHeight":{},"inputWidth":{},"numChannels":{}}})",
      size, size, channels);
}

/// Two classes at each step of sequences with two features.
const std::string kSteps = layerJson(
    "o", "RnnOutputLayer",
    R"("activationFn":{"@class":"x.ActivationSoftmax"},"lossFn":{"@class":"x.LossMCXENT"},"nin":2,"nout":2,)"
    R"("hasBias":false,"iupdater":{"@class":"x.Sgd","learningRate":0.5})");

std::string residual(const std::string& order = {}) {
  // b reads a, sum reads a and b; the vertices are not in order.
  return R"({"networkInputs":["in"],"networkOutputs":["out"],"vertices":{"out":)" +
         layerVertex(outputJson("out", 2, 1)) + R"(,"sum":)" + kElementWise + R"(,"b":)" +
         layerVertex(denseJson("b", 2, 2)) + R"(,"a":)" + layerVertex(denseJson("a", 1, 2)) +
         R"(},"vertexInputs":{"out":["sum"],"sum":["a","b"],"b":["a"],"a":["in"]})" + order +
         R"(,"defaultConfiguration":{"seed":11},"iterationCount":5,"epochCount":2})";
}

TEST_CASE("a dense weight there is [in, out] in column order, before the bias") {
  const Made made(chainJson({denseJson("d", 2, 3), outputJson("o", 3, 1)}), upTo(13));
  const auto network = made.load();
  CHECK(textOf(network->iteration(), network->epoch()) == "5 2");
  CHECK(valuesOf(*network, "d.weight") == upTo(6));  // rows of 2: one for each output
  CHECK(valuesOf(*network, "d.bias") == Floats{7, 8, 9});
  // d = (1 + 2*2 + 7, 3 + 4*2 + 8, 5 + 6*2 + 9) = (12, 19, 26); o = 10*12 + 11*19 + 12*26 + 13
  CHECK(firstOutput(*network, Tensor::of({1, 2}, {1, 2})) == 654);
  CHECK(dynamic_cast<MultiLayerNetwork&>(*network).configuration().seed == 3);
}

TEST_CASE("coefficients of all types of floating point are read") {
  for (const char* type : {"FLOAT", "DOUBLE", "HALF"}) {
    CAPTURE(type);
    const Made made(chainJson({outputJson("o", 2, 1)}), {-3, 1024, 5}, type);
    CHECK(valuesOf(*made.load(), "o.weight") == Floats{-3, 1024});
  }
}

TEST_CASE("a graph's parameters are in Deeplearning4j's order of its vertices") {
  // Kahn's algorithm from the input: a, then b and sum, which wait for a and b; the output at the end.
  for (const char* order :
       {"", R"(,"topologicalOrder":[0,4,3,2,1],"topologicalOrderStr":["in","a","b","sum","out"])"}) {
    const auto network = Made(residual(order), upTo(13)).load();
    CHECK(valuesOf(*network, "a.weight") == Floats{1, 2});
    CHECK(valuesOf(*network, "a.bias") == Floats{3, 4});
    CHECK(valuesOf(*network, "b.weight") == Floats{5, 6, 7, 8});
    CHECK(valuesOf(*network, "out.weight") == Floats{11, 12});
    // a = (4, 6), b = (5*4 + 6*6 + 9, 7*4 + 8*6 + 10) = (65, 86), sum = (69, 92)
    CHECK(firstOutput(*network, Tensor::of({1}, {1, 1})) == 11 * 69 + 12 * 92 + 13);
    CHECK(dynamic_cast<ComputationGraph&>(*network).configuration().seed == 11);
  }
}

TEST_CASE("depthwise weights are [multiplier, channels] there, each channel's together here") {
  const std::string conv =
      convJson("DepthwiseConvolution2D", 2, 4, 1, 1, R"("padding":[0,0],"depthMultiplier":2)");
  const auto network =
      Made(chainJson({conv, outputJson("o", 4, 1)}, rowsOf(4, 1)), {1, 2, 3, 4, 1, 10, 100, 1000, 0}).load();
  // Channel 0 times 1 and 3, channel 1 times 2 and 4.
  CHECK(firstOutput(*network, Tensor::of({1, 1}, {1, 2, 1, 1})) == 1 + 30 + 200 + 4000);
}

TEST_CASE("convolutionMode Same pads as there, unequally where it must") {
  const auto made = [](int kernel, int stride, const Floats& values) {
    const auto conv =
        convJson("ConvolutionLayer", 1, 1, kernel, stride, R"("padding":[0,0],"convolutionMode":"Same")");
    return Made(chainJson({conv, outputJson("o", 4, 1)}, rowsOf(1, 2)), values).load();
  };
  // 2 x 2, kernel 2, stride 1: one column and one row of zeros, at the end. Ones add up what is there.
  CHECK(firstOutput(*made(2, 1, {1, 1, 1, 1, 1, 10, 100, 1000, 0}), Tensor::of({1, 2, 3, 4}, {1, 1, 2, 2})) ==
        10 + 60 + 700 + 4000);
  // Output 2 x 2 with stride 2: of 3 x 3 or 4 x 4, of which 4 leaves no remainder.
  CHECK(made(1, 2, upTo(6))->exampleFeatures().features[0].value.shape() == Shape{1, 1, 4, 4});
}

TEST_CASE("images whose size no layer fixes may have any") {
  const std::string pool =
      layerJson("p", "GlobalPoolingLayer", R"("poolingType":"AVG","collapseDimensions":true)");
  const auto network =
      Made(chainJson({convJson("ConvolutionLayer", 1, 1, 1, 1), pool, outputJson("o", 1, 1)}), {3, 1, 0})
          .load();
  CHECK(firstOutput(*network, Tensor::of({1, 2, 3, 6}, {1, 1, 2, 2})) == 9);
  CHECK(firstOutput(*network, Tensor::of({1, 2, 3, 4, 5, 3}, {1, 1, 2, 3})) == 9);
}

TEST_CASE("what a file does not say of its input is stated") {
  const Made made(chainJson({kSteps}), {1, 2, 3, 4});
  for (const std::int64_t steps : {1, 7, 90})  // any length
    CHECK(made.load()->output(Tensor::zeros({1, steps, 2})).shape() == Shape{1, steps, 2});
  CHECK(made.load({{7, 2}})->output(Tensor::zeros({1, 7, 2})).shape() == Shape{1, 7, 2});
  CHECK(thrown<FileError>([&] {
          made.load({{7, 2}, {3}});
        }).ends_with("the network has 1 inputs, but 2 shapes are given"));
}

TEST_CASE("truncated backpropagation is that of whole sequences that are not longer") {
  const Made made(replaced(chainJson({kSteps}), R"("iterationCount":5)",
                           R"("iterationCount":5,"backpropType":"TruncatedBPTT","tbpttFwdLength":8)"),
                  {1, 2, 3, 4});
  const std::string refusal =
      "cannot be converted: backpropType TruncatedBPTT with sequences of more than 8 steps (tbpttFwdLength); "
      "inputShapes state shorter ones";
  CHECK(made.refused() == refusal);
  CHECK(made.refused({{9, 2}}) == refusal);
  CHECK(made.load({{8, 2}})->output(Tensor::zeros({1, 8, 2})).shape() == Shape{1, 8, 2});
}

TEST_CASE("without a stated order, vertices are visited as in Java's hash tables") {
  const boost::json::object none;
  dl4j::detail::Problems problems;
  const dl4j::detail::Options options(none, {}, problems);
  std::vector<dl4j::detail::Vertex> vertices;
  for (int i = 1; i <= 16; ++i)  // 15 and 16 read 1; the others read the input, which is number 0
    vertices.push_back({.name = std::to_string(i), .options = options, .inputs = {i < 15 ? "in" : "1"}});
  std::vector<std::string> names;
  for (const auto& vertex : dl4j::detail::inOrder(vertices, {"in"}, {})) names.push_back(vertex.name);
  // A table of 16 places has number 16 in place 0, before 15.
  CHECK(fmt::format("{}", fmt::join(names, " ")) == "1 2 3 4 5 6 7 8 9 10 11 12 13 14 16 15");
}

TEST_CASE("everything that muster does not have is named in one sentence") {
  const std::string output = outputJson("o", 2, 1);
  const auto layer = [&](const std::string& dense) { return chainJson({dense, output}); };
  const auto dense = [&](const std::string& more) { return layer(denseJson("d", 2, 2, more)); };
  const auto last = [&](const char* from, const char* to) { return chainJson({replaced(output, from, to)}); };
  const std::string conf = R"({"@class":"org.deeplearning4j.nn.conf.)", none = "muster has no such ";
  for (const auto& [configuration, what] : std::vector<std::pair<std::string, std::string>>{
           {layer(layerJson("rnn", "GravesLSTM", R"("nin":2,"nout":2)")),
            "layer rnn (GravesLSTM): " + none + "layer"},
           {layer(layerJson("local", "LocallyConnected2D", R"("nin":1)")),
            "layer local (LocallyConnected2D): " + none + "layer"},
           {dense(R"("weightNoise":)" + conf + R"(weightnoise.DropConnect"})"),
            "layer d (DenseLayer): weightNoise"},
           {dense(R"("constraints":[)" + conf + R"(constraint.MaxNormConstraint"}])"),
            "layer d (DenseLayer): constraints"},
           {layer(replaced(denseJson("d", 2, 2), "ActivationIdentity", "ActivationRReLU")),
            "layer d (DenseLayer): activation ActivationRReLU"},
           {last("LossMSE", "LossFMeasure"), "layer o (OutputLayer): loss LossFMeasure"},
           {last("config.Sgd", "config.AdaDelta"), "layer o (OutputLayer): updater AdaDelta"},
           {replaced(residual(), "ElementWiseVertex\",\"op\":\"Add", "L2NormalizeVertex"),
            "vertex sum (L2NormalizeVertex): " + none + "vertex"},
           {replaced(replaced(residual(), R"("b":["a"])", R"("b":["a","in"])"), R"(["a","b"])",
                     R"(["b","a"])"),
            "layer b (DenseLayer): a layer of several inputs"},
           {replaced(replaced(dense(R"("hasLayerNorm":true)"), "\"iterationCount\"", "\"x\""), "LossMSE",
                     "LossPoisson"),
            "layer d (DenseLayer): hasLayerNorm; layer o (OutputLayer): loss LossPoisson"}})
    CHECK(Made(configuration, upTo(3)).refused() == "cannot be converted: " + what);
}

TEST_CASE("layers may differ in their learning rate, and in nothing else") {
  const std::string rate = R"("learningRate":0.5)", other = R"("learningRate":0.125)";
  const auto network =
      Made(chainJson({denseJson("d", 1, 1), replaced(outputJson("o", 1, 1), rate, other)}), {1, 0, 1, 0})
          .load();
  ListIterator batches({batchOf(Tensor::of({1}, {1, 1}), Tensor::of({0}, {1, 1}))});
  network->fit(batches);
  // The loss is y^2 of y = 1: all gradients are 2.
  CHECK(valuesOf(*network, "d.weight") == Floats{0});
  CHECK(valuesOf(*network, "o.weight") == Floats{0.75});
  const Made l2(chainJson({denseJson("d", 1, 1), outputJson("o", 1, 1, R"("l2":0.5)")}), {1, 0, 1, 0});
  CHECK(l2.refused() ==
        "cannot be converted: layer o (OutputLayer): another L1, L2 or weight decay than the first layer");
}

TEST_CASE("binary cross-entropy is a sum over the outputs there") {
  const std::string output =
      replaced(replaced(outputJson("o", 1, 2, R"("hasLayerNorm":false)"), "LossMSE", "LossBinaryXENT"),
               "ActivationIdentity", "ActivationSigmoid");
  const auto network = Made(chainJson({output}), {0, 0, 0, 0}).load();
  const Batch batch = batchOf(Tensor::of({1}, {1, 1}), Tensor::of({1, 0}, {1, 2}));
  CHECK(std::abs(network->score(batch) - 2 * std::log(2.0)) < 1e-6);
  ListIterator batches({batch});
  network->fit(batches);  // gradients -0.5 and 0.5, rate 0.5
  CHECK(valuesOf(*network, "o.bias") == Floats{0.25, -0.25});
}

TEST_CASE("learning rates change by schedules, by iteration or by epoch") {
  const auto rates = [](const std::string& schedule) {
    const std::string rate = R"("learningRate":0.5)";
    const std::string output =
        replaced(outputJson("o", 1, 1), rate,
                 rate + R"(,"learningRateSchedule":{"@class":"org.nd4j.linalg.schedule.)" + schedule + "}");
    const auto network = Made(chainJson({output}), {1, 0}).load();
    const Schedule& read = network->trainingOptions().updater.learningRate();
    return textOf(read.at(0, 0), read.at(1, 0), read.at(2, 1), read.at(3, 1));
  };
  const std::string byIteration = R"("scheduleType":"ITERATION","initialValue":8,)",
                    byEpoch = R"("scheduleType":"EPOCH","initialValue":8,)";
  const std::string step = R"(StepSchedule",)", exponential = R"(ExponentialSchedule",)";
  CHECK(rates(step + byIteration + R"("decayRate":0.5,"step":2.0)") == "8 8 4 4");
  CHECK(rates(step + byEpoch + R"("decayRate":0.25,"step":1.0)") == "8 8 2 2");
  CHECK(rates(exponential + byIteration + R"("gamma":0.5)") == "8 4 2 1");
  CHECK(rates(exponential + byEpoch + R"("gamma":0.5)") == "8 8 4 4");
  // The ramp there: the base times (iteration + 1) / numIter.
  CHECK(rates(R"(RampSchedule","numIter":4,"baseSchedule":{"@class":"x.FixedSchedule","value":8})") ==
        "2 4 6 8");
  CHECK(thrown<FileError>([&] {
          rates(R"(PolySchedule","initialValue":1)");
        }).ends_with("layer o (OutputLayer): learning rates by PolySchedule"));
}

TEST_CASE("AdaGrad and RMSProp without a state begin with epsilon, as there") {
  const std::string sgd = R"("config.Sgd","learningRate":0.5)";
  const std::string output =
      replaced(outputJson("o", 1, 1), sgd.substr(1), R"(config.AdaGrad","epsilon":0.25,"learningRate":0.5)");
  const auto network = Made(chainJson({output}), {1, 0}).load();
  CHECK(floatsOf(network->optimizer().state()[0].segment("o.weight")) == Floats{0.25});
}

TEST_CASE("a normaliser becomes the first layer") {
  const std::string start("\0\nNORMALIZER\0\0\0\1", 16);
  const auto typed = [&](const std::string& type) {
    return start + std::string(1, '\0') + static_cast<char>(type.size()) + type;
  };
  const std::string configuration = chainJson({outputJson("o", 2, 1)});
  const auto with = [&](const std::string& normaliser) {
    return Made({{"configuration.json", configuration},
                 {"coefficients.bin", arrayBytes({1, 100, 0})},
                 {"normalizer.bin", normaliser}});
  };
  const auto of = [&](const Made& made, float a, float b) {
    return firstOutput(*made.load(), Tensor::of({a, b}, {1, 2}));
  };
  const std::string no(1, '\0'), yes(1, '\1');
  // (6 - 2) / 4 and (10 - 4) / 2
  CHECK(of(with(typed("STANDARDIZE") + no + arrayBytes({2, 4}) + arrayBytes({4, 2})), 6, 10) == 301);
  // From 2..6 and 0..8 to -1..1: 3 is -0.5, 6 is 0.5
  const std::string range("\xbf\xf0\0\0\0\0\0\0\x3f\xf0\0\0\0\0\0\0", 16);
  CHECK(of(with(typed("MIN_MAX") + no + range + arrayBytes({2, 0}) + arrayBytes({6, 8})), 3, 6) == 49.5f);
  // From 0..255 to -1..1, for every feature: 255 is 1
  const std::string pixels("\x40\x6f\xe0\0\0\0\0\0", 8);
  CHECK(std::abs(of(with(typed("IMAGE_MIN_MAX") + range + pixels), 255, 0) + 99) < 1e-4);
  CHECK(with(typed("MULTI_STANDARDIZE")).refused() ==
        "cannot be converted: normalizer.bin: a normaliser of type MULTI_STANDARDIZE");
  CHECK(with(typed("STANDARDIZE") + yes + arrayBytes({2, 4}) + arrayBytes({4, 2})).refused() ==
        "cannot be converted: normalizer.bin: it standardises the labels, too");
}

TEST_CASE("broken files are refused with their fault") {
  const std::string good = chainJson({outputJson("o", 2, 1)}), array = arrayBytes({1, 2, 3});
  const std::string converted = "cannot be converted: ", coefficients = converted + "coefficients.bin ";
  const auto refusedOf = [](const std::string& configuration, const std::string& bytes) {
    return Made({{"configuration.json", configuration}, {"coefficients.bin", bytes}}).refused();
  };
  CHECK(refusedOf(good, arrayBytes({1, 2})) ==
        coefficients + "has 2 numbers, but the configuration describes 3");
  CHECK(refusedOf(good, array.substr(0, array.size() - 1)) ==
        coefficients + "ends too early: 3 values are expected, 11 bytes are left");
  CHECK(refusedOf(good, array + "x") == coefficients + "has 1 bytes after its array");
  CHECK(refusedOf(good, std::string(2000, 'x')) ==
        "coefficients.bin: has more than the 1048 bytes that belong there");
  CHECK_CONTAINS(refusedOf(good, "nothing"), "coefficients.bin ");
  for (const std::string& broken : {std::string("{"), R"({"confs":)" + std::string(100000, '['),
                                    replaced(good, R"("nin":2)", R"("nin":2000000000)")})
    CHECK(refusedOf(broken, array).starts_with(converted));
  CHECK(refusedOf("{}", array).starts_with(converted + "its configuration has neither confs"));
  CHECK(refusedOf(replaced(residual(), R"("a":["in"])", R"("a":["b"])"), array) ==
        converted + "its graph has a cycle through vertex out");
  CHECK(refusedOf(replaced(residual(), R"("a":["in"])", R"("a":["x"])"), array) ==
        converted + "vertex a of its graph reads x, which it does not have");
  CHECK(Made(ZipEntries{{"other.txt", "x"}}).refused() ==
        converted + "holds no model of Deeplearning4j: there is no configuration.json in it");
  const TemporaryDirectory directory;
  const auto file = directory / "model.zip";
  writeFile(file, "no zip file");
  CHECK(thrown<FileError>([&] { dl4j::load(file); }) ==
        file.string() + ": cannot be read as a zip file: Not a zip archive");
  CHECK(thrown<FileError>([&] { dl4j::load(directory / "none.zip"); }) != "");
}

}  // namespace
}  // namespace muster::test
