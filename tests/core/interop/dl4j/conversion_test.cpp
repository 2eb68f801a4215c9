// Models of Deeplearning4j that the tests make themselves.
#include <fstream>

#include "muster/core/interop/dl4j/detail/description.h"
#include "muster/core/interop/dl4j/detail/zip_file.h"
#include "muster/core/interop/dl4j/dl4j.h"
#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/core/interop/dl4j/made_models.h"
#include "tests/support/list_iterator.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"

using namespace muster;
using namespace muster::test;

namespace {

class Made {
 public:
  Made(const std::string& configuration, const std::vector<float>& values, const std::string& type = "FLOAT")
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

std::vector<float> listOf(const Tensor& tensor) {
  return {tensor.span<float>().begin(), tensor.span<float>().end()};
}

Batch batchOf(const Tensor& features, const Tensor& labels) {
  Batch batch;
  batch.features.push_back({"features", features});
  batch.labels.push_back({"labels", labels});
  return batch;
}

std::vector<float> upTo(int count) {
  std::vector<float> values;
  for (int i = 1; i <= count; ++i) values.push_back(static_cast<float>(i));
  return values;
}

Tensor tensorOf(Network& network, const std::string& name) {
  for (const auto& block : network.blocks())
    if (block.kind != BlockKind::Gradients && block.segments->find(name)) return block.segment(name);
  return {};
}

constexpr const char* kElementWise =
    R"({"@class":"org.deeplearning4j.nn.conf.graph.ElementWiseVertex","op":"Add"})";

std::string residual(const std::string& order = {}) {
  // b reads a, sum reads a and b; the vertices are not in order.
  return R"({"networkInputs":["in"],"networkOutputs":["out"],"vertices":{"out":)" +
         layerVertex(outputJson("out", 2, 1)) + R"(,"sum":)" + kElementWise + R"(,"b":)" +
         layerVertex(denseJson("b", 2, 2)) + R"(,"a":)" + layerVertex(denseJson("a", 1, 2)) +
         R"(},"vertexInputs":{"out":["sum"],"sum":["a","b"],"b":["a"],"a":["in"]})" + order +
         R"(,"defaultConfiguration":{"seed":11},"iterationCount":5,"epochCount":2})";
}

}  // namespace

TEST_CASE("a dense weight there is [in, out] in column order, before the bias") {
  const Made made(chainJson({denseJson("d", 2, 3), outputJson("o", 3, 1)}), upTo(13));
  const auto network = made.load();
  CHECK(network->iteration() == 5);
  CHECK(network->epoch() == 2);
  CHECK(listOf(tensorOf(*network, "d.weight")) == upTo(6));  // rows of 2: one for each output
  CHECK(listOf(tensorOf(*network, "d.bias")) == std::vector<float>{7, 8, 9});
  // d = (1 + 2*2 + 7, 3 + 4*2 + 8, 5 + 6*2 + 9) = (12, 19, 26); o = 10*12 + 11*19 + 12*26 + 13
  CHECK(network->output(Tensor::of({1, 2}, {1, 2})).data<float>()[0] == 654);
  CHECK(dynamic_cast<MultiLayerNetwork&>(*network).configuration().seed == 3);
}

TEST_CASE("coefficients of all types of floating point are read") {
  for (const char* type : {"FLOAT", "DOUBLE", "HALF"}) {
    CAPTURE(type);
    const Made made(chainJson({outputJson("o", 2, 1)}), {-3, 1024, 5}, type);
    CHECK(listOf(tensorOf(*made.load(), "o.weight")) == std::vector<float>{-3, 1024});
  }
}

TEST_CASE("a graph's parameters are in Deeplearning4j's order of its vertices") {
  // Kahn's algorithm from the input: a, then b and sum, which wait for a and b; the output at the end.
  for (const char* order :
       {"", R"(,"topologicalOrder":[0,4,3,2,1],"topologicalOrderStr":["in","a","b","sum","out"])"}) {
    const Made made(residual(order), upTo(13));
    const auto network = made.load();
    CHECK(listOf(tensorOf(*network, "a.weight")) == std::vector<float>{1, 2});
    CHECK(listOf(tensorOf(*network, "a.bias")) == std::vector<float>{3, 4});
    CHECK(listOf(tensorOf(*network, "b.weight")) == std::vector<float>{5, 6, 7, 8});
    CHECK(listOf(tensorOf(*network, "out.weight")) == std::vector<float>{11, 12});
    // a = (4, 6), b = (5*4 + 6*6 + 9, 7*4 + 8*6 + 10) = (65, 86), sum = (69, 92)
    CHECK(network->output(Tensor::of({1}, {1, 1})).data<float>()[0] == 11 * 69 + 12 * 92 + 13);
    CHECK(dynamic_cast<ComputationGraph&>(*network).configuration().seed == 11);
  }
}

TEST_CASE("depthwise weights are [multiplier, channels] there, each channel's together here") {
  const std::string conv = layerJson(
      "c", "DepthwiseConvolution2D",
      R"("nin":2,"nout":4,"depthMultiplier":2,"kernelSize":[1,1],"stride":[1,1],)"
      R"("padding":[0,0],"hasBias":false,"iupdater":{"@class":"org.nd4j.linalg.learning.config.Sgd","learningRate":0.5})");
  const Made made(
      chainJson(
          {conv, outputJson("o", 4, 1)},
          R"("1":{"@class":"org.deeplearning4j.nn.conf.preprocessor.CnnToFeedForwardPreProcessor","inputHeight":1,"inputWidth":1,"numChannels":4})"),
      {1, 2, 3, 4, 1, 10, 100, 1000, 0});
  const auto network = made.load();
  // Channel 0 times 1 and 3, channel 1 times 2 and 4.
  CHECK(network->output(Tensor::of({1, 1}, {1, 2, 1, 1})).data<float>()[0] == 1 + 30 + 200 + 4000);
}

TEST_CASE("convolutionMode Same pads as there, unequally where it must") {
  const auto conv = [](int kernel, int stride) {
    const std::string k = std::to_string(kernel), s = std::to_string(stride);
    return layerJson(
        "c", "ConvolutionLayer",
        R"("nin":1,"nout":1,"convolutionMode":"Same","hasBias":false,"kernelSize":[)" + k + "," + k +
            R"(],"stride":[)" + s + "," + s +
            R"(],"padding":[0,0],"iupdater":{"@class":"org.nd4j.linalg.learning.config.Sgd","learningRate":0.5})");
  };
  const auto rows = [](int size) {
    return R"("1":{"@class":"org.deeplearning4j.nn.conf.preprocessor.CnnToFeedForwardPreProcessor","numChannels":1,"inputHeight":)" +
           std::to_string(size) + R"(,"inputWidth":)" + std::to_string(size) + "}";
  };
  // 2 x 2, kernel 2, stride 1: one column and one row of zeros, at the end. Ones add up what is there.
  const Made even(chainJson({conv(2, 1), outputJson("o", 4, 1)}, rows(2)), {1, 1, 1, 1, 1, 10, 100, 1000, 0});
  CHECK(even.load()->output(Tensor::of({1, 2, 3, 4}, {1, 1, 2, 2})).data<float>()[0] == 10 + 60 + 700 + 4000);
  // Output 2 x 2 with stride 2: of 3 x 3 or 4 x 4, of which 4 leaves no remainder.
  const auto larger = Made(chainJson({conv(1, 2), outputJson("o", 4, 1)}, rows(2)), upTo(6)).load();
  CHECK(larger->exampleFeatures().features[0].value.shape() == Shape{1, 1, 4, 4});
}

TEST_CASE("images whose size no layer fixes may have any") {
  const std::string conv = layerJson(
      "c", "ConvolutionLayer",
      R"("nin":1,"nout":1,"hasBias":false,"kernelSize":[1,1],"stride":[1,1],"iupdater":{"@class":"org.nd4j.linalg.learning.config.Sgd","learningRate":0.5})");
  const std::string pool =
      layerJson("p", "GlobalPoolingLayer", R"("poolingType":"AVG","collapseDimensions":true)");
  const Made made(chainJson({conv, pool, outputJson("o", 1, 1)}), {3, 1, 0});
  const auto network = made.load();
  CHECK(network->output(Tensor::of({1, 2, 3, 6}, {1, 1, 2, 2})).data<float>()[0] == 9);
  CHECK(network->output(Tensor::of({1, 2, 3, 4, 5, 3}, {1, 1, 2, 3})).data<float>()[0] == 9);
}

TEST_CASE("what a file does not say of its input is stated") {
  const std::string output = layerJson(
      "o", "RnnOutputLayer",
      R"("activationFn":{"@class":"x.ActivationSoftmax"},"lossFn":{"@class":"x.LossMCXENT"},"nin":2,"nout":2,"hasBias":false,"iupdater":{"@class":"x.Sgd","learningRate":0.5})");
  const Made made(chainJson({output}), {1, 2, 3, 4});
  for (const std::int64_t steps : {1, 7, 90})  // any length
    CHECK(made.load()->output(Tensor::zeros({1, steps, 2})).shape() == Shape{1, steps, 2});
  CHECK(made.load({{7, 2}})->output(Tensor::zeros({1, 7, 2})).shape() == Shape{1, 7, 2});
  CHECK(thrown<FileError>([&] {
          made.load({{7, 2}, {3}});
        }).ends_with("the network has 1 inputs, but 2 shapes are given"));
}

TEST_CASE("truncated backpropagation is that of whole sequences that are not longer") {
  const std::string output = layerJson(
      "o", "RnnOutputLayer",
      R"("activationFn":{"@class":"x.ActivationSoftmax"},"lossFn":{"@class":"x.LossMCXENT"},"nin":2,"nout":2,"hasBias":false,"iupdater":{"@class":"x.Sgd","learningRate":0.5})");
  const Made made(replaced(chainJson({output}), R"("iterationCount":5)",
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
  CHECK(names == std::vector<std::string>{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13",
                                          "14", "16", "15"});
}

TEST_CASE("everything that muster does not have is named in one sentence") {
  const std::pair<std::string, std::string> cases[] = {
      {chainJson({layerJson("rnn", "GravesLSTM", R"("nin":2,"nout":2)"), outputJson("o", 2, 1)}),
       "layer rnn (GravesLSTM): muster has no such layer"},
      {chainJson({layerJson("local", "LocallyConnected2D", R"("nin":1)"), outputJson("o", 2, 1)}),
       "layer local (LocallyConnected2D): muster has no such layer"},
      {chainJson(
           {denseJson("d", 2, 2,
                      R"("weightNoise":{"@class":"org.deeplearning4j.nn.conf.weightnoise.DropConnect"})"),
            outputJson("o", 2, 1)}),
       "layer d (DenseLayer): weightNoise"},
      {chainJson(
           {denseJson(
                "d", 2, 2,
                R"("constraints":[{"@class":"org.deeplearning4j.nn.conf.constraint.MaxNormConstraint"}])"),
            outputJson("o", 2, 1)}),
       "layer d (DenseLayer): constraints"},
      {chainJson(
           {replaced(denseJson("d", 2, 2), "ActivationIdentity", "ActivationRReLU"), outputJson("o", 2, 1)}),
       "layer d (DenseLayer): activation ActivationRReLU"},
      {chainJson({replaced(outputJson("o", 2, 1), "LossMSE", "LossFMeasure")}),
       "layer o (OutputLayer): loss LossFMeasure"},
      {chainJson({replaced(outputJson("o", 2, 1), "config.Sgd", "config.AdaDelta")}),
       "layer o (OutputLayer): updater AdaDelta"},
      {replaced(residual(), "ElementWiseVertex\",\"op\":\"Add", "L2NormalizeVertex"),
       "vertex sum (L2NormalizeVertex): muster has no such vertex"},
      {replaced(replaced(chainJson({denseJson("d", 2, 2, R"("hasLayerNorm":true)"), outputJson("o", 2, 1)}),
                         "\"iterationCount\"", "\"x\""),
                "LossMSE", "LossPoisson"),
       "layer d (DenseLayer): hasLayerNorm; layer o (OutputLayer): loss LossPoisson"}};
  for (const auto& [configuration, what] : cases)
    CHECK(Made(configuration, upTo(3)).refused() == "cannot be converted: " + what);
}

TEST_CASE("layers may differ in their learning rate, and in nothing else") {
  const std::string rate = R"("learningRate":0.5)", other = R"("learningRate":0.125)";
  const Made made(chainJson({denseJson("d", 1, 1), replaced(outputJson("o", 1, 1), rate, other)}),
                  {1, 0, 1, 0});
  const auto network = made.load();
  const Batch batch = batchOf(Tensor::of({1}, {1, 1}), Tensor::of({0}, {1, 1}));
  ListIterator batches({batch});
  network->fit(batches);
  // The loss is y^2 of y = 1: all gradients are 2.
  CHECK(listOf(tensorOf(*network, "d.weight")) == std::vector<float>{0});
  CHECK(listOf(tensorOf(*network, "o.weight")) == std::vector<float>{0.75});
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
  CHECK(listOf(tensorOf(*network, "o.bias")) == std::vector<float>{0.25, -0.25});
}

TEST_CASE("learning rates change by schedules, by iteration or by epoch") {
  const auto rates = [](const std::string& schedule) {
    const std::string rate = R"("learningRate":0.5)";
    const std::string output =
        replaced(outputJson("o", 1, 1), rate,
                 rate + R"(,"learningRateSchedule":{"@class":"org.nd4j.linalg.schedule.)" + schedule + "}");
    const auto network = Made(chainJson({output}), {1, 0}).load();
    const Schedule& read = network->trainingOptions().updater.learningRate();
    return std::vector<double>{read.at(0, 0), read.at(1, 0), read.at(2, 1), read.at(3, 1)};
  };
  CHECK(rates(R"(StepSchedule","scheduleType":"ITERATION","initialValue":8,"decayRate":0.5,"step":2.0)") ==
        std::vector<double>{8, 8, 4, 4});
  CHECK(rates(R"(StepSchedule","scheduleType":"EPOCH","initialValue":8,"decayRate":0.25,"step":1.0)") ==
        std::vector<double>{8, 8, 2, 2});
  CHECK(rates(R"(ExponentialSchedule","scheduleType":"ITERATION","initialValue":8,"gamma":0.5)") ==
        std::vector<double>{8, 4, 2, 1});
  CHECK(rates(R"(ExponentialSchedule","scheduleType":"EPOCH","initialValue":8,"gamma":0.5)") ==
        std::vector<double>{8, 8, 4, 4});
  // The ramp there: the base times (iteration + 1) / numIter.
  CHECK(rates(R"(RampSchedule","numIter":4,"baseSchedule":{"@class":"x.FixedSchedule","value":8})") ==
        std::vector<double>{2, 4, 6, 8});
  CHECK(thrown<FileError>([&] {
          rates(R"(PolySchedule","initialValue":1)");
        }).ends_with("layer o (OutputLayer): learning rates by PolySchedule"));
}

TEST_CASE("AdaGrad and RMSProp without a state begin with epsilon, as there") {
  const std::string sgd = R"("config.Sgd","learningRate":0.5)";
  const std::string output =
      replaced(outputJson("o", 1, 1), sgd.substr(1), R"(config.AdaGrad","epsilon":0.25,"learningRate":0.5)");
  const auto network = Made(chainJson({output}), {1, 0}).load();
  CHECK(listOf(network->optimizer().state()[0].segment("o.weight")) == std::vector<float>{0.25});
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
    return made.load()->output(Tensor::of({a, b}, {1, 2})).data<float>()[0];
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
  const std::string good = chainJson({outputJson("o", 2, 1)});
  const auto refusedOf = [](const std::string& configuration, const std::string& coefficients) {
    return Made({{"configuration.json", configuration}, {"coefficients.bin", coefficients}}).refused();
  };
  const std::string array = arrayBytes({1, 2, 3});
  CHECK(refusedOf(good, arrayBytes({1, 2})) ==
        "cannot be converted: coefficients.bin has 2 numbers, but the configuration describes 3");
  CHECK(refusedOf(good, array.substr(0, array.size() - 1)) ==
        "cannot be converted: coefficients.bin ends too early: 3 values are expected, 11 bytes are left");
  CHECK(refusedOf(good, array + "x") == "cannot be converted: coefficients.bin has 1 bytes after its array");
  CHECK(refusedOf(good, std::string(2000, 'x')) ==
        "coefficients.bin: has more than the 1048 bytes that belong there");
  CHECK_CONTAINS(refusedOf(good, "nothing"), "coefficients.bin ");
  CHECK(refusedOf("{", array).starts_with("cannot be converted: "));
  CHECK(refusedOf("{}", array).starts_with("cannot be converted: its configuration has neither confs"));
  CHECK(refusedOf(replaced(residual(), R"("a":["in"])", R"("a":["b"])"), array) ==
        "cannot be converted: its graph has a cycle through vertex out");
  CHECK(refusedOf(replaced(residual(), R"("a":["in"])", R"("a":["x"])"), array) ==
        "cannot be converted: vertex a of its graph reads x, which it does not have");
  CHECK(refusedOf(R"({"confs":)" + std::string(100000, '['), array).starts_with("cannot be converted: "));
  CHECK(refusedOf(replaced(good, R"("nin":2)", R"("nin":2000000000)"), array)
            .starts_with("cannot be converted: "));
  CHECK(Made(ZipEntries{{"other.txt", "x"}}).refused() ==
        "cannot be converted: holds no model of Deeplearning4j: there is no configuration.json in it");
  TemporaryDirectory directory;
  const auto file = directory / "model.zip";
  std::ofstream(file) << "no zip file";
  CHECK(thrown<FileError>([&] { dl4j::load(file); }) ==
        file.string() + ": cannot be read as a zip file: Not a zip archive");
  CHECK(!thrown<FileError>([&] { dl4j::load(directory / "none.zip"); }).empty());
}
