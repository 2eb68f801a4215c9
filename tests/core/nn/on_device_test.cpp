#include "muster/core/nn/compile/on_device.h"

#include "tests/core/nn/elsewhere.h"
#include "tests/core/nn/test.h"

using namespace muster;

namespace {

/// Simulates other workers: each value counts three times.
class Threefold final : public Peers {
 public:
  void sum(std::span<double> values) override {
    ++calls;
    for (double& value : values) value *= 3;
  }
  int calls = 0;
};

}  // namespace

TEST_CASE("a network with layers in another context trains to the same bits as without, also with peers") {
  Context other;
  int exchanges = 0;
  const auto train = [&](const std::vector<Layer>& layers, const Shape& input, bool masked = false) {
    Context context;
    Threefold peers;
    context.setPeers(&peers);
    MultiLayerNetwork model({.seed = 3,
                             .updater = Adam{.learningRate = 0.01},
                             .l2 = 1e-3,
                             .clipNorm = 1,
                             .inputShape = input,
                             .layers = layers},
                            context);
    model.init();
    for (std::int64_t i = 0; i < 6; ++i) {
      // Two batch sizes: each has its own program.
      const auto seed = static_cast<std::uint64_t>(20 + i);
      Batch batch = input.rank() == 2 ? test::sequenceBatch(input, 5 + i % 2, 3, seed, masked)
                                      : test::classBatch(input, 5 + i % 2, 3, seed);
      batch.stamp = {.sequence = i, .iteration = i, .firstExample = 6 * i};
      model.step(batch);
    }
    exchanges = peers.calls;
    return test::stateBits(model);
  };
  const Conv2d conv{.outChannels = 5, .kernel = {3, 3}, .activation = Activation::GELU, .name = "conv"};
  const BatchNorm norm{.activation = Activation::ReLU, .name = "norm"};
  const BatchNorm synchronised{.synchronised = true, .name = "norm"};
  const Dropout drop{.rate = 0.3, .name = "drop"};
  const Dense dense{.units = 7, .activation = Activation::Tanh, .name = "dense"};
  const Output output{.classes = 3};
  const Shape images{2, 8, 7};
  const auto plain = train({conv, norm, MaxPool2d{}, drop, dense, output}, images);
  CHECK(exchanges == 0);
  using test::Elsewhere;
  const Elsewhere placedConv{conv, &other, "conv"};
  const Elsewhere placedNorm{norm, &other, "norm"};
  const Elsewhere placedDrop{drop, &other, "drop"};
  const Elsewhere placedDense{dense, &other, "dense"};
  CHECK(train({placedConv, placedNorm, Elsewhere{MaxPool2d{}, &other}, placedDrop, placedDense, output},
              images) == plain);
  CHECK(train({conv, placedNorm, MaxPool2d{}, drop, placedDense, output}, images) == plain);
  CHECK(exchanges == 0);
  const auto together = train({conv, synchronised, output}, images);
  CHECK(exchanges == 12);  // in the forward and the backward pass of six steps
  CHECK(train({conv, Elsewhere{synchronised, &other, "norm"}, output}, images) == together);
  CHECK(exchanges == 12);

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
