#include "muster/core/io/weights.h"

#include "muster/core/io/safetensors.h"
#include "muster/core/nn/models/resnet18.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/arrays.h"
#include "tests/support/reference_ops.h"
#include "tests/support/shapes2d.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

/// [1, 4, 4] -> conv [2, 4, 4] -> norm -> dense [3].
struct Small {
  Small() { network.init(); }
  MultiLayerNetwork network{
      {.seed = 1,
       .inputShape = {1, 4, 4},
       .layers = {Conv2d{.outChannels = 2, .kernel = {3, 3}, .padding = {1, 1}, .name = "conv"},
                  BatchNorm{.name = "norm"}, Output{.classes = 3, .name = "head"}}}};
};

WeightOptions namesInTorch() {
  return {.layers = {{"conv", "features.0"}, {"norm", "features.1"}, {"head", "classifier"}}};
}

/// A file with random numbers from `low` on.
Safetensors randomFile(double low, double high, const std::vector<std::pair<std::string, Shape>>& tensors) {
  Safetensors file;
  for (const auto& [name, shape] : tensors)
    file.add(name, randomTensor(shape.elements(), name, DType::Float32, low, high).reshape(shape));
  return file;
}

/// The file that PyTorch would write for such a network.
Safetensors torchFile() {
  Safetensors file = randomFile(0.5, 1.5,
                                {{"features.0.weight", {2, 1, 3, 3}},
                                 {"features.0.bias", {2}},
                                 {"features.1.weight", {2}},
                                 {"features.1.bias", {2}},
                                 {"features.1.running_mean", {2}},
                                 {"features.1.running_var", {2}},
                                 {"classifier.weight", {3, 32}},
                                 {"classifier.bias", {3}}});
  file.add("features.1.num_batches_tracked", Tensor::zeros({1}, DType::Int64));
  return file;
}

Safetensors savedWeights(Network& network, const WeightOptions& options = {}) {
  const TemporaryDirectory directory;
  saveWeights(network, directory / "weights", options);
  return readSafetensors(directory / "weights");
}

void loadFrom(Network& network, const Safetensors& file, const WeightOptions& options = {}) {
  const TemporaryDirectory directory;
  writeSafetensors(directory / "weights", file);
  loadWeights(network, directory / "weights", options);
}

std::map<std::string, Shape> shapesIn(const Safetensors& file) {
  std::map<std::string, Shape> shapes;
  for (const auto& [name, values] : file.tensors) shapes[name] = values.shape();
  return shapes;
}

Tensor valuesOf(Network& network, const std::string& name) {
  for (auto& block : network.blocks())
    if (block.kind != BlockKind::Gradients && block.segments->find(name)) return block.segment(name);
  FAIL("there is no " << name);
  return {};
}

bool same(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::ranges::equal(a.span<float>(), b.span<float>());
}

/// Output of PyTorch's modules in evaluation mode for one image [1, 4, 4], in float64.
Array outputInTorch(const Safetensors& file, const Tensor& image) {
  const auto at = [&](const char* name) { return toArray(*file.find(name)); };
  const auto shape = conv({1, 1, 4, 4}, 2, {.kernel = 3, .padding = 1});
  auto normed = reference::batchNorm(
      {.input = shape.output(), .epsilon = 1e-5},
      reference::conv2d(shape, toArray(image), at("features.0.weight"), at("features.0.bias")),
      at("features.1.running_mean"), at("features.1.running_var"), at("features.1.weight"),
      at("features.1.bias"));
  const Array flat({1, 32}, std::move(normed.values));
  return reference::activation(Activation::Softmax,
                               reference::dense(flat, at("classifier.weight"), at("classifier.bias")));
}

TEST_CASE("a network with PyTorch's weights computes the same as PyTorch's modules") {
  const Safetensors file = torchFile();
  Small loaded;
  loadFrom(loaded.network, file, namesInTorch());
  const Tensor image = randomTensor(16, "image", DType::Float32, 0, 0.1).reshape({1, 1, 4, 4});
  const auto expected = outputInTorch(file, image);
  const Tensor output = loaded.network.output(image);
  // Some 60 roundings of terms below 100 in the logits, whose error is that of the probabilities, relatively.
  CHECK(maxDifference(output, expected) <= 60 * 100 * 0x1p-24);
  const Safetensors written = savedWeights(loaded.network, namesInTorch());
  CHECK(written.tensors.size() == file.tensors.size() - 1);  // PyTorch needs no num_batches_tracked
  for (const auto& [name, values] : written.tensors) CHECK(same(values, *file.find(name)));
}

/// The last state of torch.nn.GRU or LSTM (one layer) for x [T, 2] with 2 units, in float64, by the formulas
/// of PyTorch's documentation. @param at  a tensor's element by its name.
template <typename At>
std::vector<double> lastStateInTorch(bool gru, const std::vector<double>& x, At at) {
  const auto sigma = [](double v) { return 1 / (1 + std::exp(-v)); };
  std::vector<double> h(2), c(2);
  for (std::size_t t = 0; t < x.size() / 2; ++t) {
    const auto part = [&](const char* side, std::int64_t gate, std::int64_t u, const double* in) {
      const std::int64_t row = gate * 2 + u;
      return at(fmt::format("rnn.bias_{}_l0", side), row) +
             at(fmt::format("rnn.weight_{}_l0", side), row * 2) * in[0] +
             at(fmt::format("rnn.weight_{}_l0", side), row * 2 + 1) * in[1];
    };
    std::vector<double> next(2);
    for (std::int64_t u = 0; u < 2; ++u) {
      const auto own = [&](std::int64_t gate) { return part("ih", gate, u, &x[2 * t]); };
      const auto past = [&](std::int64_t gate) { return part("hh", gate, u, h.data()); };
      const auto i = static_cast<std::size_t>(u);
      if (gru) {
        const double r = sigma(own(0) + past(0)), z = sigma(own(1) + past(1));
        next[i] = (1 - z) * std::tanh(own(2) + r * past(2)) + z * h[i];
      } else {
        c[i] = sigma(own(1) + past(1)) * c[i] + sigma(own(0) + past(0)) * std::tanh(own(2) + past(2));
        next[i] = sigma(own(3) + past(3)) * std::tanh(c[i]);
      }
    }
    h = next;
  }
  return h;
}

TEST_CASE("recurrent layers have PyTorch's names, and compute the same with its two biases") {
  for (const bool gru : {false, true}) {
    CAPTURE(gru);
    const std::int64_t rows = gru ? 6 : 8;
    const Safetensors file = randomFile(-1, 1,
                                        {{"rnn.weight_ih_l0", {rows, 2}},
                                         {"rnn.weight_hh_l0", {rows, 2}},
                                         {"rnn.bias_ih_l0", {rows}},
                                         {"rnn.bias_hh_l0", {rows}}});
    const Layer layer = gru ? Layer(GRU{.units = 2, .returnSequences = false, .name = "rnn"})
                            : Layer(LSTM{.units = 2, .returnSequences = false, .name = "rnn"});
    MultiLayerNetwork network({.inputShape = {3, 2}, .layers = {layer}}), other(network.configuration());
    network.init();
    other.init();
    loadFrom(network, file);
    const std::vector<double> x{0.5, -1, 0.25, 2, -0.75, 1};
    const auto inTorch = [&](const Safetensors& weights) {
      return lastStateInTorch(gru, x, [&](const std::string& name, std::int64_t i) {
        return double{weights.find(name)->data<float>()[i]};
      });
    };
    const Tensor input = Tensor::of({0.5f, -1, 0.25f, 2, -0.75f, 1}, {1, 3, 2}),
                 output = network.output(input);
    const Safetensors written = savedWeights(network);
    CHECK(written.tensors.size() == 4);
    const auto expected = inTorch(file), again = inTorch(written);
    for (std::size_t u = 0; u < 2; ++u) {
      CHECK(output.span<float>()[u] == doctest::Approx(expected[u]).epsilon(1e-5));
      CHECK(again[u] == doctest::Approx(expected[u]).epsilon(1e-6));
    }
    loadFrom(other, written);
    CHECK(same(other.output(input), output));
  }
}

TEST_CASE("attention has the names of torch.nn.MultiheadAttention") {
  MultiLayerNetwork network(
      {.inputShape = {3, 4}, .layers = {SelfAttention{.heads = 2, .name = "attention"}}});
  network.init();
  CHECK(shapesIn(savedWeights(network)) == std::map<std::string, Shape>{{"attention.in_proj_weight", {12, 4}},
                                                                        {"attention.in_proj_bias", {12}},
                                                                        {"attention.out_proj.weight", {4, 4}},
                                                                        {"attention.out_proj.bias", {4}}});
}

TEST_CASE("an ignored tensor of a type that cannot be read is ignored, others are named with it") {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "torch.safetensors";
  MultiLayerNetwork network({.inputShape = {1}, .layers = {Dense{.units = 1, .name = "d"}}});
  network.init();
  const std::string header = R"({"d.weight":{"dtype":"BF16","shape":[1,1],"data_offsets":[0,2]},)"
                             R"("d.bias":{"dtype":"F16","shape":[1],"data_offsets":[2,4]},)"
                             R"("d.mask":{"dtype":"BOOL","shape":[1],"data_offsets":[4,5]}})";
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size());
  writeFile(path, length + header + std::string("\x40\xC0\x00\x3C\x01", 5));
  CHECK_CONTAINS(thrown<FileError>([&] { loadWeights(network, path); }),
                 "it has what the network has not: d.mask (BOOL)");
  loadWeights(network, path, {.ignore = {"d.mask"}});
  CHECK(network.output(Tensor::of({2}, {1, 1})).data<float>()[0] == -5);  // -3 * 2 + 1
}

TEST_CASE("running variances are converted between the biased and the unbiased estimate") {
  const Safetensors file = torchFile();
  auto options = namesInTorch();
  options.batch = 2;  // of 16 pixels: 32 values
  Small loaded;
  loadFrom(loaded.network, file, options);
  const Tensor there = *file.find("features.1.running_var"), here = valuesOf(loaded.network, "norm.variance");
  for (std::int64_t c = 0; c < 2; ++c)
    CHECK(here.data<float>()[c] == static_cast<float>(there.data<float>()[c] * (31.0 / 32)));
  CHECK(same(valuesOf(loaded.network, "norm.mean"), *file.find("features.1.running_mean")));
  const Tensor again = *savedWeights(loaded.network, options).find("features.1.running_var");
  for (std::int64_t c = 0; c < 2; ++c)  // two roundings
    CHECK(std::abs(again.data<float>()[c] - there.data<float>()[c]) <= there.data<float>()[c] * 0x1p-23f);
}

TEST_CASE("a new head keeps its weights, and every tensor that does not fit is reported") {
  Safetensors file = torchFile();
  for (auto& [name, values] : file.tensors) {
    if (name == "classifier.weight") values = Tensor::zeros({5, 32});
    if (name == "classifier.bias") name = "classifier.offset";
  }
  Small tuned, untouched;
  CHECK(thrown<FileError>([&] { loadFrom(tuned.network, file, namesInTorch()); })
            .ends_with("does not fit: it lacks: classifier.bias; it has what the network has not: "
                       "classifier.offset; it has other tensors: classifier.weight is float32 [5, 32] on "
                       "cpu, here float32 [3, 32] on cpu"));
  CHECK(same(valuesOf(tuned.network, "conv.weight"), valuesOf(untouched.network, "conv.weight")));
  auto options = namesInTorch();
  options.keep = {"head"};
  options.ignore = {"offset"};
  loadFrom(tuned.network, file, options);
  CHECK(same(valuesOf(tuned.network, "conv.weight"), *file.find("features.0.weight")));
  CHECK(same(valuesOf(tuned.network, "head.weight"), valuesOf(untouched.network, "head.weight")));
  CHECK(tuned.network.iteration() == 0);
}

TEST_CASE("an option that names a layer which the network does not have is refused") {
  Small mine;
  CHECK_REFUSED(saveWeights(mine.network, "/nowhere", {.layers = {{"con", "conv1"}}}),
                "weights: layers names the layer con, which this network does not have; it has conv, head, "
                "head.flatten, norm");
}

TEST_CASE("ResNet-18 has the names and shapes of torchvision's tensors") {
  ComputationGraph small(resnet18(1000, 3, {.imageSize = {64, 64}, .width = 4, .largeImages = true}));
  small.init();
  const auto shapes = shapesIn(savedWeights(small, {.layers = resnet18InTorchvision()}));
  // 20 convolutions, 20 normalisations of 4 tensors, a dense layer; torchvision has 20 num_batches_tracked
  // more.
  CHECK(shapes.size() == 102);
  for (const auto& [name, shape] :
       std::map<std::string, Shape>{{"conv1.weight", {4, 3, 7, 7}},
                                    {"bn1.running_var", {4}},
                                    {"layer1.1.conv2.weight", {4, 4, 3, 3}},
                                    {"layer2.0.downsample.0.weight", {8, 4, 1, 1}},
                                    {"layer4.0.downsample.1.bias", {32}},
                                    {"layer4.1.bn2.running_mean", {32}},
                                    {"fc.weight", {1000, 32}},
                                    {"fc.bias", {1000}}})
    CHECK_MESSAGE((shapes.contains(name) && shapes.at(name) == shape), name);
}

}  // namespace
}  // namespace muster::test
