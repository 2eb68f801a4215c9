#include "muster/core/nn/computation_graph.h"
#include "muster/core/ops/elementwise.h"
#include "tests/core/nn/test.h"
#include "tests/core/nn/user_layer.h"

// Every layer and every loss goes through the central-difference check, at the end of a chain whose first
// layers have parameters, so that the gradient with respect to a layer's input is checked with its own.

using namespace muster;

namespace {

using test::checkGradientsOf;

constexpr std::int64_t kClasses = 4;

/// A convolution, the layers under test, and a classifier, over batches with and without a whole block of
/// samples.
void checkBetween(const std::vector<Layer>& middle, const Shape& input = {2, 8, 7}) {
  for (const std::int64_t examples : {3, 16, 21}) {
    CAPTURE(examples);
    std::vector<Layer> layers{Conv2d{.outChannels = 3, .kernel = {3, 3}, .activation = Activation::Tanh}};
    layers.insert(layers.end(), middle.begin(), middle.end());
    layers.push_back(Output{.classes = kClasses});
    checkGradientsOf(layers, input, test::classBatch(input, examples, kClasses, 11));
  }
}

/// Doubles its input, but with a wrong gradient of 1.9.
struct WrongProgram final : test::CopyProgram {
  using CopyProgram::CopyProgram;
  void forward(const Tensor& x, Tensor& y, const StepInfo&) override { scale(2, x, y, context); }
  void backward(const Tensor&, const Tensor&, Tensor& gradY, Tensor& gradX, const StepInfo&) override {
    scale(1.9, gradY, gradX, context);
  }
};
struct Wrong : test::UserLayer<WrongProgram> {
  static constexpr std::string_view kType = "wrong";
};

}  // namespace

TEST_CASE("gradient check: convolutions, pooling and resized images") {
  for (const Layer& layer : std::initializer_list<Layer>{
           Conv2d{.outChannels = 5, .kernel = {3, 2}, .stride = {2, 1}},
           Conv2d{.outChannels = 4, .kernel = {3, 3}, .padding = {1, 2}},
           Conv2d{.outChannels = 4, .kernel = {2, 2}, .dilation = {2, 2}},
           Conv2d{.outChannels = 17, .kernel = {1, 1}},
           Conv2d{.outChannels = 6, .kernel = {3, 3}, .groups = 3},
           Conv2d{.outChannels = 3, .kernel = {5, 5}, .padding = {2, 2}},
           Conv2d{.outChannels = 2, .kernel = {1, 7}, .padding = {0, 3}, .bias = false},
           ConvTranspose2d{.outChannels = 4, .kernel = {3, 2}, .stride = {2, 1}, .outputPadding = {1, 0}},
           ConvTranspose2d{.outChannels = 3, .padding = {1, 0}, .groups = 3, .activation = Activation::Tanh},
           Upsample2d{.scale = {2, 1}}, Upsample2d{.scale = {2, 3}, .mode = UpsampleMode::Bilinear},
           ZeroPad2d{.padding = {1, 0, 2, 1}}, MaxPool2d{},
           MaxPool2d{.kernel = {3, 3}, .stride = {1, 2}, .padding = {1, 1}}, AveragePool2d{},
           AveragePool2d{.kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 0}}, GlobalPool2d{},
           GlobalPool2d{.kind = PoolKind::Max}})
    checkBetween({layer});
}

TEST_CASE("gradient check: convolutions and pooling along sequences") {
  const Shape input{7, 4};
  for (const Layer& layer : std::initializer_list<Layer>{
           Conv1d{.outChannels = 6, .kernel = 3, .stride = 2, .padding = 1},
           Conv1d{.outChannels = 6, .kernel = 2, .dilation = 2, .groups = 2, .activation = Activation::GELU},
           Conv1d{
               .outChannels = 4, .kernel = 3, .causal = true, .activation = Activation::Tanh, .bias = false},
           MaxPool1d{.kernel = 3, .stride = 2, .padding = 1}, AveragePool1d{}})
    checkGradientsOf({Conv1d{.outChannels = 6, .kernel = 2, .activation = Activation::Tanh}, layer,
                      Output{.classes = kClasses}},
                     input, test::classBatch(input, 5, kClasses, 11));
}

TEST_CASE("gradient check: batch normalisation, by the batch's statistics or frozen ones") {
  for (const auto activation :
       {Activation::Identity, Activation::ReLU, Activation::Tanh, Activation::Sigmoid, Activation::GELU}) {
    CAPTURE(nameOf(activation));
    for (const bool frozen : {false, true}) {
      const auto norm = [&](Layer layer) { return frozen ? layer.frozen() : layer; };
      checkBetween({norm(BatchNorm{.activation = activation})});
      checkBetween({Dense{.units = 6}, norm(BatchNorm{.activation = activation, .affine = !frozen})});
    }
  }
  checkBetween({BatchNorm{.activation = Activation::Softmax}});
  checkBetween({BatchNorm{.affine = false}});
  checkBetween({BatchNorm{.activation = Activation::ReLU}, Conv2d{.outChannels = 17, .kernel = {2, 2}},
                BatchNorm{.epsilon = 0.1}});
}

TEST_CASE("gradient check: activations inside layers and as layers") {
  for (const auto activation :
       {Activation::Identity, Activation::ReLU, Activation::LeakyReLU, Activation::Tanh, Activation::Sigmoid,
        Activation::Softmax, Activation::GELU}) {
    CAPTURE(nameOf(activation));
    checkBetween({ActivationLayer{.activation = activation}});
    checkBetween({Dense{.units = 6, .activation = activation}});
    if (activation != Activation::Softmax)
      checkBetween({Conv2d{.outChannels = 4, .kernel = {3, 3}, .activation = activation}});
  }
}

TEST_CASE("gradient check: dense, flatten, dropout and layer normalisation") {
  checkBetween({Dense{.units = 19}, LayerNorm{.epsilon = 0.1, .affine = false}, Dense{.units = 5}});
  checkBetween({Flatten{}, Dense{.units = 6, .bias = false}, LayerNorm{}, Dropout{.rate = 0.5}});
}

TEST_CASE("gradient check: dense layers over each step of a sequence, with a loss at each") {
  const Shape input{5, 3};  // five steps of three features
  const std::vector<Layer> layers{Dense{.units = 6, .activation = Activation::GELU, .perStep = true},
                                  LayerNorm{}, ActivationLayer{.activation = Activation::Softmax},
                                  Dropout{.rate = 0.2}, Output{.classes = 4, .perStep = true}};
  checkGradientsOf(layers, input, test::sequenceBatch(input, 7, 4, 5, false));
  checkGradientsOf(layers, input, test::sequenceBatch(input, 7, 4, 5, true));
  auto summed = layers;
  summed.back() = Output{.classes = 4, .perStep = true, .lossMean = LossMean::Examples, .lossWeight = 0.5};
  checkGradientsOf(summed, input, test::sequenceBatch(input, 7, 4, 5, true));
  auto flat = layers;
  flat.back() = Output{.classes = 4};  // one loss per sequence
  checkGradientsOf(flat, input, test::classBatch(input, 7, 4, 5));
}

// Layers before a frozen layer learn through it; frozen first layers have no gradient.
TEST_CASE("gradient check: frozen layers inside a graph, and batch normalisation with fixed statistics") {
  const Shape input{2, 8, 7};
  const auto graphOf = [&](bool frozen) {
    const auto place = [&](const Layer& layer) { return frozen ? layer.frozen() : layer; };
    const Conv2d conv{.outChannels = 3, .kernel = {3, 3}, .activation = Activation::Tanh};
    ComputationGraphConfiguration graph{.seed = 7, .inputs = {{.name = "image", .shape = input}}};
    graph.add("bottom", place(conv), {"image"});
    graph.add("left", conv, {"bottom"});
    graph.add("norm", place(BatchNorm{.activation = Activation::Sigmoid}), {"left"});
    graph.add("right", conv, {"bottom"});
    graph.add("through", place(Conv2d{.outChannels = 3, .kernel = {1, 1}}), {"right"});
    graph.add("sum", Combine{.activation = Activation::Tanh}, {"norm", "through"});
    graph.addOutput(graph.add("output", Output{.classes = kClasses}, {"sum"}));
    return graph;
  };
  const auto batch = test::classBatch(input, 6, kClasses, 11);
  std::int64_t checked[2];
  for (const bool frozen : {false, true}) {
    ComputationGraph model(graphOf(frozen));
    model.init();
    // Running statistics as after training, not 0 and 1.
    for (float& value : model.block(BlockKind::Statistics).segment("norm.mean").span<float>()) value = 0.3f;
    for (float& value : model.block(BlockKind::Statistics).segment("norm.variance").span<float>())
      value = 0.4f;
    const Tensor before = cloneTensor(model.block(BlockKind::Statistics).values);
    checked[frozen] = checkGradientsOf(model, batch);
    CHECK(std::ranges::equal(before.span<float>(), model.block(BlockKind::Statistics).values.span<float>()) ==
          frozen);
  }
  // Left out: 24 and 3 of the bottom's weight and bias, 9 and 3 of the middle's, 3 and 3 of the
  // normalisation.
  CHECK(checked[0] - checked[1] == 45);

  MultiLayerNetwork frozen({.inputShape = {4}, .layers = {Layer(Output{.classes = 3}).frozen()}});
  frozen.init();
  CHECK_REFUSED(checkGradients(frozen, test::classBatch({4}, 2, 3, 1)),
                "gradient check: the model has no parameters that are not frozen");
}

TEST_CASE("the gradient check detects a wrong gradient") {
  MultiLayerNetwork model(
      {.seed = 1, .inputShape = {4}, .layers = {Dense{.units = 5}, Wrong{}, Output{.classes = 3}}});
  model.init();
  CHECK_FALSE(checkGradients(model, test::classBatch({4}, 8, 3, 5)).passed);
}
