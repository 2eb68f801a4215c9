#include "muster/core/data/in_memory.h"
#include "tests/core/nn/test.h"
#include "tests/core/nn/user_layer.h"
#include "tests/support/allocations.h"
#include "tests/support/toy_model.h"

// Forward and backward passes without a loss, including the gradient of the input.

using namespace muster;

namespace {

using test::sameBits;

Tensor randomTensor(const Shape& shape, std::uint64_t seed) {
  return test::classBatch(shape.dropFirst(), shape[0], 1, seed).features[0].value;
}

double dot(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.elements(); ++i)
    sum += static_cast<double>(a.data<float>()[i]) * b.data<float>()[i];
  return sum;
}

const Tensor& gradients(Model& model) {
  return model.block(BlockKind::Gradients).values;
}

/// Central differences of <gradOutput, forward(input)>.
void checkChain(std::vector<Layer> layers, const Shape& example, bool training = true) {
  for (const std::int64_t examples : {1, 3, 16, 21}) {
    CAPTURE(examples);
    MultiLayerNetwork model({.seed = 7, .inputShape = example, .layers = layers});
    model.init();
    INFO(model.summary());
    const ForwardPass pass{.training = training, .call = 3, .firstExample = 5};
    const Tensor input = randomTensor(example.prepend(examples), 1);
    Tensor output, gradInput;
    model.forward(input, output, pass);
    const Tensor gradOutput = randomTensor(output.shape(), 2);
    model.backward(gradOutput, &gradInput);
    REQUIRE(gradInput.shape() == input.shape());
    const auto at = [&](std::int64_t i, float value) {
      const float before = std::exchange(input.data<float>()[i], value);
      model.forward(input, output, pass);
      input.data<float>()[i] = before;
      return dot(gradOutput, output);
    };
    const std::int64_t stride = std::max<std::int64_t>(input.elements() / 50, 1);
    for (std::int64_t i = 0; i < input.elements(); i += stride) {
      constexpr float kStep = 1e-2f;
      const float value = input.data<float>()[i];
      const double numeric = (at(i, value + kStep) - at(i, value - kStep)) / (2 * kStep);
      CAPTURE(i);
      CHECK(gradInput.data<float>()[i] == doctest::Approx(numeric).epsilon(1e-2).scale(1));
    }
  }
}

/// Records whether its input's gradient was requested.
struct SpyProgram final : test::CopyProgram {
  using CopyProgram::CopyProgram;
  void backward(const Tensor& x, const Tensor& y, Tensor& gradY, Tensor& gradX, const StepInfo& i) override {
    asked.push_back(gradX.defined());
    CopyProgram::backward(x, y, gradY, gradX, i);
  }
  static inline std::vector<bool> asked;
};
struct Spy : test::UserLayer<SpyProgram> {
  static constexpr std::string_view kType = "spy";
};

/// Convolution, pooling, dropout and a dense layer at the end; no kinks.
MultiLayerConfiguration smoothChain() {
  return {.seed = 5,
          .inputShape = {2, 9, 8},
          .layers = {Conv2d{.outChannels = 4, .kernel = {3, 3}, .activation = Activation::Tanh},
                     AveragePool2d{}, Dropout{.rate = 0.4}, Dense{.units = 3}}};
}

MultiLayerConfiguration withOutput(Output output) {
  auto configuration = smoothChain();
  configuration.layers.back() = output;
  return configuration;
}

}  // namespace

TEST_CASE("derivatives by the input agree with central differences, whatever the first layer is") {
  const Conv2d conv{.outChannels = 3, .kernel = {3, 3}, .activation = Activation::Tanh};
  const Dense dense{.units = 4, .activation = Activation::Tanh};
  checkChain({conv, dense}, {1, 6, 7});
  checkChain({Conv2d{.outChannels = 20, .kernel = {5, 5}, .activation = Activation::GELU}, AveragePool2d{}},
             {2, 8, 8});
  checkChain({AveragePool2d{}, conv}, {5, 9, 8});
  checkChain({dense, Dropout{.rate = 0.5}, Dense{.units = 2}}, {7});
  checkChain({Dense{.units = 2}}, {2, 3, 2});  // a Flatten is put before it
  checkChain({ActivationLayer{.activation = Activation::Sigmoid}}, {3, 4, 4});
  checkChain({Dropout{.rate = 0.3}, conv}, {2, 5, 5});
  checkChain({Dropout{.rate = 0.3}, dense, Dropout{.rate = 0.3}}, {6}, /*training=*/false);
}

TEST_CASE("forward(), the loss and backward() by hand have the bits of gradient()") {
  for (const bool classes : {true, false}) {
    MultiLayerNetwork model(withOutput(
        classes ? Output{.classes = 3}
                : Output{.classes = 3, .loss = Loss::MeanSquaredError, .activation = Activation::Tanh}));
    model.init();
    auto batch = classes ? test::classBatch({2, 9, 8}, 10, 3, 1) : test::targetBatch({2, 9, 8}, 10, 3, 1);
    batch.stamp = {.epoch = 4, .firstExample = 20};
    model.gradient(batch);
    const Tensor expected = cloneTensor(gradients(model));
    setZero(model.block(BlockKind::Gradients).values, model.context());

    Tensor output;
    model.forward(batch.features[0].value, output, {.call = 4, .firstExample = 20});
    Tensor gradOutput = Tensor::empty(output.shape());
    loss(classes ? Loss::NegativeLogLikelihood : Loss::MeanSquaredError, output, batch.labels[0].value, {},
         gradOutput, 0, model.context());
    model.backward(gradOutput, nullptr);
    CHECK(sameBits(gradients(model), expected));
    Tensor gradInput;
    model.backward(gradOutput, &gradInput);  // again for the same pass
    CHECK(sameBits(gradients(model), expected));
  }
}

TEST_CASE("the gradient by the input is computed only on request") {
  MultiLayerNetwork model(
      {.inputShape = {4}, .layers = {Spy{}, Dense{.units = 3}, Spy{}, Output{.classes = 2}}});
  model.init();
  const auto batch = test::classBatch({4}, 5, 2, 1);
  const auto askedIn = [&](auto call) {
    SpyProgram::asked.clear();
    call();
    return SpyProgram::asked;
  };
  const std::vector<bool> second{true}, both{true, true};  // the first spy is before all parameters
  CHECK(askedIn([&] { model.gradient(batch); }) == second);
  Tensor output, gradInput;
  model.forward(batch.features[0].value, output, {});
  const Tensor gradOutput = randomTensor(output.shape(), 3);
  CHECK(askedIn([&] { model.backward(gradOutput, nullptr); }) == second);
  CHECK(askedIn([&] { model.backward(gradOutput, &gradInput); }) == both);
  CHECK(askedIn([&] { model.gradient(batch); }) == second);
}

TEST_CASE("each pass drops other units, and those of an example do not depend on where it is computed") {
  MultiLayerNetwork model(smoothChain());
  model.init();
  const Tensor input = randomTensor({8, 2, 9, 8}, 1);
  Tensor first, second, again, part;
  model.forward(input, first);
  model.forward(input, second);
  CHECK_FALSE(sameBits(first, second));
  model.forward(input, again, {.call = 0});
  CHECK(sameBits(first, again));
  model.forward(input, again, {.call = 1});
  CHECK(sameBits(second, again));
  model.forward(input.rows(4, 8), part, {.call = 1, .firstExample = 4});
  for (std::int64_t i = 0; i < part.elements(); ++i)
    CHECK(part.data<float>()[i] == doctest::Approx(second.rows(4, 8).data<float>()[i]).epsilon(1e-5));
}

TEST_CASE("in evaluation mode nothing is dropped, and forward() equals output()") {
  MultiLayerNetwork model(smoothChain());
  model.init();
  const Tensor input = randomTensor({5, 2, 9, 8}, 1);
  Tensor output;
  model.forward(input, output, {.training = false});
  CHECK(sameBits(output, model.output(input)));
  model.forward(input, output, {});
  CHECK_FALSE(sameBits(output, model.output(input)));
}

TEST_CASE(
    "a chain without an output layer has no loss, but supports forward(), output(), clone() and save()") {
  MultiLayerNetwork model(smoothChain());
  model.init();
  const auto batch = test::classBatch({2, 9, 8}, 6, 3, 1);
  const std::string noLoss =
      "network: it has no loss, as its last layer is dense, not an output; run it by forward() and "
      "backward()";
  CHECK_REFUSED(model.gradient(batch), noLoss);
  CHECK_REFUSED(model.step(batch), noLoss);
  CHECK_REFUSED(model.score(batch), noLoss);
  InMemoryDataSetIterator data(batch.features[0].value, batch.labels[0].value, 3);
  CHECK_REFUSED(model.fit(data), "batch 1 of epoch 1: " + noLoss);
  CHECK(model.iteration() == 0);
  CHECK(sameBits(model.clone()->output(batch.features[0].value), model.output(batch.features[0].value)));
}

TEST_CASE("backward() is refused unless its forward()'s activations are still there") {
  MultiLayerNetwork model(withOutput({.classes = 3}));
  model.init();
  const auto batch = test::classBatch({2, 9, 8}, 6, 3, 1);
  const Tensor& input = batch.features[0].value;
  const Tensor gradOutput = randomTensor({6, 3}, 2);
  Tensor output;
  const auto refusal = [&] {
    return test::thrown<InvalidArgument>([&] { model.backward(gradOutput, nullptr); });
  };
  const std::string missing = "network: backward() needs the activations of a forward() before it";
  CHECK(refusal().starts_with(missing));
  model.forward(input, output);
  CHECK(refusal().empty());
  model.output(input);  // uses separate memory
  CHECK(refusal().empty());
  model.gradient(batch);
  CHECK(refusal().starts_with(missing));
  model.forward(input, output);
  for (std::int64_t size = 1; size <= 9; ++size)
    if (size != 6) model.output(randomTensor({size, 2, 9, 8}, 1));
  CHECK(refusal().starts_with(missing));

  model.forward(input, output);
  CHECK_REFUSED(model.backward(randomTensor({6, 2}, 1), nullptr),
                "network: gradOutput is float32 [6, 2] on cpu, expected float32 [6, 3] on cpu");
  CHECK(test::thrown<InvalidArgument>([&] {
          model.forward(randomTensor({6, 2}, 1), output);
        }).starts_with("network: expected features [2, 9, 8]"));
  CHECK(refusal().empty());
}

TEST_CASE("a user-defined model without forward() and backward() throws a clear exception") {
  test::ToyModel model;
  Tensor output;
  Model& base = model;
  CHECK_REFUSED(base.forward(output, output), "model: this model has no forward()");
  CHECK_REFUSED(base.backward(output, nullptr), "model: this model has no backward()");
}

TEST_CASE("forward() and backward() allocate nothing once the batch size is known") {
  MultiLayerNetwork model(smoothChain());
  model.init();
  const Tensor input = randomTensor({16, 2, 9, 8}, 1), gradOutput = randomTensor({16, 3}, 2);
  Tensor output, gradInput;
  const auto pass = [&] {
    model.forward(input, output);
    model.backward(gradOutput, &gradInput);
  };
  pass();
  CHECK(test::allocationsIn(pass) == 0);
}
