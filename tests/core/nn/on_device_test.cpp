#include "muster/core/nn/compile/on_device.h"

#include "muster/core/base/random.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/core/nn/batches.h"
#include "tests/core/nn/elsewhere.h"
#include "tests/support/state_bits.h"
#include "tests/support/test.h"

using namespace muster;

namespace {

Tensor random(const Shape& shape, const std::string& name, Layout layout = Layout::RowMajor) {
  const RandomStream stream(3, name);
  Tensor tensor = Tensor::zeros(shape, DType::Float32, Device::cpu(), layout);
  for (std::int64_t i = 0; i < tensor.storage(); ++i)
    tensor.data<float>()[i] = static_cast<float>(stream.normal(static_cast<std::uint64_t>(i)));
  return tensor;
}

/// Simulates other workers: each value counts three times.
class Threefold final : public Peers {
 public:
  void sum(std::span<double> values) override {
    ++calls;
    for (double& value : values) value *= 3;
  }
  int calls = 0;
};

struct Run {
  Tensor y, gradX;
  std::vector<Tensor> gradients, statistics;
  int exchanges = 0;
};

/// Forward and backward of a layer, on the network's device or in a second context as if on another.
Run run(const Layer& layer, const Shape& example, bool elsewhere) {
  const Module& module = layer.module();
  const Shape shapes[] = {example};
  ModuleBinding binding{.name = "layer", .inputs = {{.shape = example.prepend(6)}}};
  for (const auto& spec : module.parameters(shapes)) {
    binding.parameters.push_back(random(spec.shape, spec.name));
    binding.gradients.push_back(random(spec.shape, "junk"));
  }
  for (const auto& spec : module.statistics(shapes)) {
    binding.statistics.push_back(random(spec.shape, spec.name));
    std::ranges::fill(binding.statistics.back().span<float>(), 1.5f);
  }
  Context context, other;
  Threefold peers;
  const auto program =
      elsewhere ? detail::compileOnDevice(module, binding, context, other) : module.compile(binding, context);
  // The parameters change between compilation and the step.
  for (auto& parameter : binding.parameters)
    for (auto& value : parameter.span<float>()) value += 0.25f;
  const Shape output = module.outputShape(shapes).prepend(6);
  Run result{.y = random(output, "junk", program->outputLayout()),
             .gradX = random(example.prepend(6), "junk", program->inputLayout()),
             .gradients = binding.gradients,
             .statistics = binding.statistics};
  const Tensor x[] = {random(example.prepend(6), "x", program->inputLayout())};
  Tensor gradY = random(output, "gradY", program->outputLayout());
  Tensor gradX[] = {result.gradX};
  const StepInfo info{.stamp = {.epoch = 2}, .seed = 4, .lossWeight = 6};
  context.setPeers(&peers);
  program->forwardAll(x, result.y, info);
  program->backwardAll(x, result.y, gradY, gradX, info);
  result.exchanges = peers.calls;
  return result;
}

bool same(const Tensor& a, const Tensor& b) {
  return std::ranges::equal(a.span<float>(), b.span<float>());
}

}  // namespace

TEST_CASE("a layer in another context gives the same bits: outputs, gradients and statistics") {
  const std::vector<std::pair<Layer, Shape>> cases{
      {Conv2d{.outChannels = 5, .kernel = {3, 3}, .activation = Activation::GELU}, {2, 7, 6}},
      {MaxPool2d{}, {3, 6, 6}},
      {Dense{.units = 4, .activation = Activation::Tanh}, {9}},
      {Dropout{.rate = 0.4, .name = "drop"}, {50}},
      {BatchNorm{.activation = Activation::ReLU}, {3, 4, 4}},
      {BatchNorm{.synchronised = true}, {3, 4, 4}},
  };
  for (const auto& [layer, example] : cases) {
    CAPTURE(layer.module().type());
    const Run here = run(layer, example, false), there = run(layer, example, true);
    CHECK(same(here.y, there.y));
    CHECK(same(here.gradX, there.gradX));
    CHECK(here.exchanges == there.exchanges);
    for (std::size_t i = 0; i < here.gradients.size(); ++i)
      CHECK(same(here.gradients[i], there.gradients[i]));
    for (std::size_t i = 0; i < here.statistics.size(); ++i)
      CHECK(same(here.statistics[i], there.statistics[i]));
  }
}

TEST_CASE("a layer in another context works in all of the network's workers") {
  CHECK(run(BatchNorm{.synchronised = true}, {3, 4, 4}, true).exchanges == 2);
  CHECK(run(BatchNorm{}, {3, 4, 4}, true).exchanges == 0);
}

TEST_CASE("a network with layers in another context trains to the same bits as without") {
  Context other;
  const auto train = [&](const std::vector<Layer>& layers, const Shape& input, bool masked) {
    MultiLayerNetwork model({.seed = 3,
                             .updater = Adam{.learningRate = 0.01},
                             .l2 = 1e-3,
                             .clipNorm = 1,
                             .inputShape = input,
                             .layers = layers});
    model.init();
    for (std::int64_t i = 0; i < 6; ++i) {
      // Two batch sizes: each has its own program.
      const auto seed = static_cast<std::uint64_t>(20 + i);
      Batch batch = input.rank() == 2 ? test::sequenceBatch(input, 5 + i % 2, 3, seed, masked)
                                      : test::classBatch(input, 5 + i % 2, 3, seed);
      batch.stamp = {.sequence = i, .iteration = i, .firstExample = 6 * i};
      model.step(batch);
    }
    return test::stateBits(model);
  };
  const Conv2d conv{.outChannels = 5, .kernel = {3, 3}, .name = "conv"};
  const BatchNorm norm{.activation = Activation::ReLU, .name = "norm"};
  const Dropout drop{.rate = 0.3, .name = "drop"};
  const Dense dense{.units = 7, .activation = Activation::Tanh, .name = "dense"};
  const Output output{.classes = 3};
  const auto plain = train({conv, norm, MaxPool2d{}, drop, dense, output}, {2, 8, 7}, false);
  using test::Elsewhere;
  CHECK(
      train({Elsewhere{conv, &other, "conv"}, Elsewhere{norm, &other, "norm"}, Elsewhere{MaxPool2d{}, &other},
             Elsewhere{drop, &other, "drop"}, Elsewhere{dense, &other, "dense"}, output},
            {2, 8, 7}, false) == plain);
  CHECK(train({conv, Elsewhere{norm, &other, "norm"}, MaxPool2d{}, drop, Elsewhere{dense, &other, "dense"},
               output},
              {2, 8, 7}, false) == plain);

  const LSTM lstm{.units = 5, .name = "lstm"};
  const SelfAttention attention{.name = "attention"};
  const Output steps{.classes = 3, .perStep = true};
  for (const bool masked : {false, true})
    CHECK(train({Elsewhere{lstm, &other, "lstm"}, Elsewhere{attention, &other, "attention"}, steps}, {6, 3},
                masked) == train({lstm, attention, steps}, {6, 3}, masked));
  CHECK(train({lstm, attention, steps}, {6, 3}, false) != train({lstm, attention, steps}, {6, 3}, true));
}

TEST_CASE("OnDevice is saved to files, and changes nothing on the network's own device") {
  MultiLayerConfiguration configuration{
      .seed = 3, .inputShape = {6}, .layers = {Dense{.units = 5}, Output{.classes = 3}}};
  MultiLayerNetwork plain(configuration);
  configuration.layers[0] = OnDevice(configuration.layers[0], Device::cpu());
  MultiLayerNetwork placed(configuration);
  CHECK_CONTAINS(placed.toJson(), "\"device\": \"cpu\"");
  CHECK(MultiLayerConfiguration::fromJson(placed.toJson()).layers[0].settings().device == Device::cpu());
  plain.init();
  placed.init();
  const Batch batch = test::classBatch({6}, 4, 3, 1);
  CHECK(placed.step(batch).wait().score == plain.step(batch).wait().score);
}

TEST_CASE("a device that is not available is refused") {
  MultiLayerNetwork model(
      {.inputShape = {6}, .layers = {OnDevice(Dense{.units = 5}, Device::cuda(97)), Output{.classes = 3}}});
  model.init();
  const Batch batch = test::classBatch({6}, 4, 3, 1);
  CHECK_CONTAINS(test::thrown<DeviceUnavailable>([&] { model.step(batch); }), "cuda:97");
}
