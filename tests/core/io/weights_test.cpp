#include "muster/core/io/weights.h"

#include "muster/core/base/random.h"
#include "muster/core/data/in_memory.h"
#include "muster/core/io/safetensors.h"
#include "muster/core/nn/models/resnet18.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/reference_ops.h"
#include "tests/support/shapes2d.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using test::TemporaryDirectory;
using test::thrown;

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

/// The file that PyTorch would write for such a network, with random numbers.
Safetensors torchFile() {
  Safetensors file;
  const RandomStream random(3, "weights");
  std::uint64_t index = 0;
  for (const auto& [name, shape] :
       std::vector<std::pair<std::string, Shape>>{{"features.0.weight", {2, 1, 3, 3}},
                                                  {"features.0.bias", {2}},
                                                  {"features.1.weight", {2}},
                                                  {"features.1.bias", {2}},
                                                  {"features.1.running_mean", {2}},
                                                  {"features.1.running_var", {2}},
                                                  {"classifier.weight", {3, 32}},
                                                  {"classifier.bias", {3}}}) {
    const Tensor values = Tensor::empty(shape);
    for (float& value : values.span<float>()) value = static_cast<float>(random.uniform(index++)) + 0.5f;
    file.add(name, values);
  }
  file.add("features.1.num_batches_tracked", Tensor::zeros({1}, DType::Int64));
  return file;
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
test::Array outputInTorch(const Safetensors& file, const Tensor& image) {
  namespace reference = test::reference;
  const auto at = [&](const char* name) { return test::toArray(*file.find(name)); };
  const auto shape = test::conv({1, 1, 4, 4}, 2, {.kernel = 3, .padding = 1});
  auto normed = reference::batchNorm(
      {.input = shape.output(), .epsilon = 1e-5},
      reference::conv2d(shape, test::toArray(image), at("features.0.weight"), at("features.0.bias")),
      at("features.1.running_mean"), at("features.1.running_var"), at("features.1.weight"),
      at("features.1.bias"));
  const test::Array flat({1, 32}, std::move(normed.values));
  return reference::activation(Activation::Softmax,
                               reference::dense(flat, at("classifier.weight"), at("classifier.bias")));
}

TEST_CASE("a network with PyTorch's weights computes the same as PyTorch's modules") {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "torch.safetensors", back = directory.path() / "back.safetensors";
  const Safetensors file = torchFile();
  writeSafetensors(path, file);
  Small loaded;
  loadWeights(loaded.network, path, namesInTorch());
  const Tensor image = Tensor::empty({1, 1, 4, 4});
  const RandomStream random(8, "image");
  for (std::int64_t i = 0; i < 16; ++i) image.data<float>()[i] = static_cast<float>(random.uniform(i)) * 0.1f;
  const auto expected = outputInTorch(file, image);
  const Tensor output = loaded.network.output(image);
  // Some 60 roundings of terms below 100 in the logits, whose error is that of the probabilities, relatively.
  CHECK(test::maxDifference(output, expected) <= 60 * 100 * 0x1p-24);

  saveWeights(loaded.network, back, namesInTorch());
  const Safetensors written = readSafetensors(back);
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
  const TemporaryDirectory directory;
  const auto path = directory.path() / "torch.safetensors", back = directory.path() / "back.safetensors";
  for (const bool gru : {false, true}) {
    CAPTURE(gru);
    const std::int64_t rows = gru ? 6 : 8;
    Safetensors file;
    const RandomStream random(5, "recurrent");
    std::uint64_t index = 0;
    for (const auto& [name, shape] :
         std::vector<std::pair<std::string, Shape>>{{"rnn.weight_ih_l0", {rows, 2}},
                                                    {"rnn.weight_hh_l0", {rows, 2}},
                                                    {"rnn.bias_ih_l0", {rows}},
                                                    {"rnn.bias_hh_l0", {rows}}}) {
      const Tensor values = Tensor::empty(shape);
      for (float& value : values.span<float>()) value = static_cast<float>(2 * random.uniform(index++)) - 1;
      file.add(name, values);
    }
    writeSafetensors(path, file);
    const Layer layer = gru ? Layer(GRU{.units = 2, .returnSequences = false, .name = "rnn"})
                            : Layer(LSTM{.units = 2, .returnSequences = false, .name = "rnn"});
    MultiLayerNetwork network({.inputShape = {3, 2}, .layers = {layer}});
    network.init();
    loadWeights(network, path);
    const std::vector<double> x{0.5, -1, 0.25, 2, -0.75, 1};
    const auto expected = lastStateInTorch(gru, x, [&](const std::string& name, std::int64_t i) {
      return double{file.find(name)->data<float>()[i]};
    });
    const Tensor input = Tensor::of({0.5f, -1, 0.25f, 2, -0.75f, 1}, {1, 3, 2});
    const Tensor output = network.output(input);
    for (std::int64_t u = 0; u < 2; ++u)
      CHECK(output.data<float>()[u] == doctest::Approx(expected[static_cast<std::size_t>(u)]).epsilon(1e-5));

    saveWeights(network, back);
    const Safetensors written = readSafetensors(back);
    CHECK(written.tensors.size() == 4);
    const auto again = lastStateInTorch(gru, x, [&](const std::string& name, std::int64_t i) {
      return double{written.find(name)->data<float>()[i]};
    });
    for (std::size_t u = 0; u < 2; ++u) CHECK(again[u] == doctest::Approx(expected[u]).epsilon(1e-6));
    MultiLayerNetwork other({.inputShape = {3, 2}, .layers = {layer}});
    other.init();
    loadWeights(other, back);
    CHECK(same(other.output(input), output));
  }
}

TEST_CASE("attention has the names of torch.nn.MultiheadAttention") {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "weights.safetensors";
  MultiLayerNetwork network(
      {.inputShape = {3, 4}, .layers = {SelfAttention{.heads = 2, .name = "attention"}}});
  network.init();
  saveWeights(network, path);
  const Safetensors file = readSafetensors(path);
  CHECK(file.find("attention.in_proj_weight")->shape() == Shape{12, 4});
  CHECK(file.find("attention.in_proj_bias")->shape() == Shape{12});
  CHECK(file.find("attention.out_proj.weight")->shape() == Shape{4, 4});
  CHECK(file.find("attention.out_proj.bias")->shape() == Shape{4});
  CHECK(file.tensors.size() == 4);
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
  test::writeFile(path, length + header + std::string("\x40\xC0\x00\x3C\x01", 5));
  CHECK_CONTAINS(thrown<FileError>([&] { loadWeights(network, path); }),
                 "it has what the network has not: d.mask (BOOL)");
  loadWeights(network, path, {.ignore = {"d.mask"}});
  CHECK(network.output(Tensor::of({2}, {1, 1})).data<float>()[0] == -5);  // -3 * 2 + 1
}

TEST_CASE("running variances are converted between the biased and the unbiased estimate") {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "torch.safetensors", back = directory.path() / "back.safetensors";
  const Safetensors file = torchFile();
  writeSafetensors(path, file);
  auto options = namesInTorch();
  options.batch = 2;  // of 16 pixels: 32 values
  Small loaded;
  loadWeights(loaded.network, path, options);
  const Tensor there = *file.find("features.1.running_var"), here = valuesOf(loaded.network, "norm.variance");
  for (std::int64_t c = 0; c < 2; ++c)
    CHECK(here.data<float>()[c] == static_cast<float>(there.data<float>()[c] * (31.0 / 32)));
  CHECK(same(valuesOf(loaded.network, "norm.mean"), *file.find("features.1.running_mean")));
  saveWeights(loaded.network, back, options);
  const Tensor again = *readSafetensors(back).find("features.1.running_var");
  for (std::int64_t c = 0; c < 2; ++c)  // two roundings
    CHECK(std::abs(again.data<float>()[c] - there.data<float>()[c]) <= there.data<float>()[c] * 0x1p-23f);
}

TEST_CASE("a new head keeps its weights, and every tensor that does not fit is reported") {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "torch.safetensors";
  Safetensors file = torchFile();
  for (auto& [name, values] : file.tensors) {
    if (name == "classifier.weight") values = Tensor::zeros({5, 32});
    if (name == "classifier.bias") name = "classifier.offset";
  }
  writeSafetensors(path, file);
  Small tuned, untouched;
  CHECK(thrown<FileError>([&] { loadWeights(tuned.network, path, namesInTorch()); })
            .ends_with("does not fit: it lacks: classifier.bias; it has what the network has not: "
                       "classifier.offset; it has other tensors: classifier.weight is float32 [5, 32] on "
                       "cpu, here float32 [3, 32] on cpu"));
  CHECK(same(valuesOf(tuned.network, "conv.weight"), valuesOf(untouched.network, "conv.weight")));

  auto options = namesInTorch();
  options.keep = {"head"};
  options.ignore = {"offset"};
  loadWeights(tuned.network, path, options);
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
  const TemporaryDirectory directory;
  const auto path = directory.path() / "resnet18.safetensors";
  saveWeights(small, path, {.layers = resnet18InTorchvision()});
  const auto file = readSafetensors(path);
  // 20 convolutions, 20 normalisations of 4 tensors, a dense layer; torchvision has 20 num_batches_tracked
  // more.
  CHECK(file.tensors.size() == 102);
  const auto shapeOf = [&](const char* name) {
    const Tensor* found = file.find(name);
    return found ? found->shape() : Shape();
  };
  CHECK(shapeOf("conv1.weight") == Shape{4, 3, 7, 7});
  CHECK(shapeOf("bn1.running_var") == Shape{4});
  CHECK(shapeOf("layer1.1.conv2.weight") == Shape{4, 4, 3, 3});
  CHECK(shapeOf("layer2.0.downsample.0.weight") == Shape{8, 4, 1, 1});
  CHECK(shapeOf("layer4.0.downsample.1.bias") == Shape{32});
  CHECK(shapeOf("layer4.1.bn2.running_mean") == Shape{32});
  CHECK(shapeOf("fc.weight") == Shape{1000, 32});
  CHECK(shapeOf("fc.bias") == Shape{1000});
}

TEST_CASE("if a pre-trained network's body is frozen, only its new head is trained") {
  const Resnet18Options options{.imageSize = {32, 32}, .width = 4, .largeImages = true};
  const TemporaryDirectory directory;
  const auto path = directory.path() / "pretrained.safetensors";
  ComputationGraph pretrained(resnet18(7, 3, options));
  pretrained.init();
  saveWeights(pretrained, path, {.layers = resnet18InTorchvision()});

  auto graph = resnet18(2, 3, options);
  graph.seed = 5;
  for (auto& vertex : graph.vertices)
    if (vertex.name != "output") vertex.layer = vertex.layer.frozen();
  ComputationGraph tuned(graph);
  tuned.init();
  loadWeights(tuned, path,
              {.layers = resnet18InTorchvision(), .keep = {"output"}, .ignore = {"fc.weight", "fc.bias"}});
  const Tensor head = cloneTensor(valuesOf(tuned, "output.weight"));
  Tensor images = Tensor::empty({4, 3, 32, 32}), labels = Tensor::zeros({4}, DType::Int64);
  const RandomStream random(2, "images");
  for (std::int64_t i = 0; i < images.elements(); ++i)
    images.data<float>()[i] = static_cast<float>(random.normal(static_cast<std::uint64_t>(i)));
  InMemoryDataSetIterator data(images, labels, 4);
  tuned.fit(data);
  for (const auto* name : {"stem.weight", "stem.norm.gamma", "stage4.block2.conv2.weight"})
    CHECK(same(valuesOf(tuned, name), valuesOf(pretrained, name)));
  CHECK(!same(valuesOf(tuned, "output.weight"), head));
}

}  // namespace
}  // namespace muster
