// A layer of your own, written with the operations of core/ops: the program checks its gradient, trains a
// network that has it with two workers, saves the network and loads it.

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/eval/evaluation.h"
#include "muster/core/eval/same_outputs.h"
#include "muster/core/nn/gradient_check.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/core/ops/activation.h"
#include "muster/core/ops/axpy.h"
#include "muster/core/ops/dense.h"
#include "muster/datasets/generated_digits.h"
#include "muster/parallel/parallel_wrapper.h"
#include "options.h"

using namespace muster;

namespace {

/// The passes of a TanhSkip for one batch size: h = tanh(W x + b), y = x + alpha h. Allocates memory only
/// when it is made, so that a training step allocates nothing.
class TanhSkipProgram final : public ModuleProgram {
 public:
  TanhSkipProgram(const ModuleBinding& binding, Context& context)
      : context_(context),
        dense_(planDense({binding.input()[0], binding.input()[1], binding.input()[1]}, context)),
        parameters_(binding.parameters),
        gradients_(binding.gradients),
        hidden_(Tensor::empty(binding.input())),
        gradHidden_(Tensor::empty(binding.input())) {}

  void forward(const Tensor& x, Tensor& y, const StepInfo&) override {
    dense_->forward(x, parameters_[kWeight], parameters_[kBias], hidden_);
    activationForward(Activation::Tanh, hidden_, hidden_, context_);
    copy(x, y, context_);
    axpy(alpha(), hidden_, y, context_);
  }

  void backward(const Tensor& x, const Tensor&, Tensor& gradY, Tensor& gradX, const StepInfo&) override {
    double gradAlpha = 0;  // always summed in the same order, so that every run gives the same bits
    for (std::int64_t i = 0; i < gradY.elements(); ++i)
      gradAlpha += double{gradY.data<float>()[i]} * hidden_.data<float>()[i];
    gradients_[kAlpha].data<float>()[0] = static_cast<float>(gradAlpha);
    setZero(gradHidden_, context_);
    axpy(alpha(), gradY, gradHidden_, context_);
    activationBackward(Activation::Tanh, {}, hidden_, gradHidden_, gradHidden_, context_);
    dense_->backwardWeights(x, gradHidden_, gradients_[kWeight], gradients_[kBias]);
    if (!gradX.defined()) return;  // no layer before this one needs it
    dense_->backwardData(gradHidden_, parameters_[kWeight], gradX);
    axpy(1, gradY, gradX, context_);
  }

 private:
  enum : std::size_t { kWeight, kBias, kAlpha };  // in the order of TanhSkip::parameters
  double alpha() const { return parameters_[kAlpha].data<float>()[0]; }

  Context& context_;
  std::unique_ptr<DensePlan> dense_;
  std::vector<Tensor> parameters_, gradients_;  // views of the network's blocks
  Tensor hidden_, gradHidden_;
};

/// The layer: y = x + alpha tanh(W x + b), [F] to [F], with a learnable factor alpha. It has no base class: a
/// struct with these members is a layer.
struct TanhSkip {
  static constexpr std::string_view kType = "tanhskip";  // its name in files
  static constexpr bool kFlatInput = true;               // takes [F]; images are flattened before it

  double initialScale = 0.5;
  std::string name = {};

  Shape outputShape(const Shape& input) const {
    require(input.rank() == 1, "tanhskip: expected an input [F], got {}", input.toString());
    return input;
  }
  std::vector<ParameterSpec> parameters(const Shape& input) const {
    const auto f = input[0];
    return {{.name = "weight", .shape = {f, f}, .init = Init::xavier(), .fanIn = f, .fanOut = f},
            {.name = "bias", .shape = {f}, .regularised = false},
            {.name = "alpha", .shape = {1}, .init = Init::constant(initialScale), .regularised = false}};
  }
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const {
    return std::make_unique<TanhSkipProgram>(binding, context);
  }
  void fields(Fields& f) {
    f.field("name", name);
    f.field("initialScale", initialScale);
  }
  void validate() const {
    require(initialScale != 0, "tanhskip: with an initialScale of 0 its weights would never learn");
  }
};

/// Compares its gradient, and by the layer before it that of its input, with central differences of the loss.
void checkLayer() {
  MultiLayerNetwork network(
      {.inputShape = {6}, .layers = {Dense{.units = 5}, TanhSkip{}, Output{.classes = 3}}});
  network.init();
  Batch batch;
  Tensor& features = Batch::ensure(batch.features, "features", {4, 6});
  Tensor& labels = Batch::ensure(batch.labels, "labels", {4}, DType::Int64);
  for (int i = 0; i < 24; ++i) features.data<float>()[i] = 0.1f * static_cast<float>(i * i % 19 - 9);
  for (int i = 0; i < 4; ++i) labels.data<std::int64_t>()[i] = i % 3;
  const auto result = checkGradients(network, batch);
  fmt::print("gradient check: {} elements; the worst is {}\n", result.checked, result.toString());
  if (!result.passed) throw Error("the gradient of the layer is wrong");
}

void run(int workers, std::int64_t epochs, std::int64_t examples) {
  checkLayer();
  GeneratedDigitsIterator train(32, examples, /*seed=*/20, true), test(32, examples, 20, false);
  MultiLayerNetwork network(
      {.seed = 1,
       .updater = Nesterovs{.learningRate = 0.02, .momentum = 0.9},
       .inputShape = {1, 28, 28},
       .layers = {Conv2d{.outChannels = 8, .kernel = 5, .stride = 2}, MaxPool2d{.kernel = 2},
                  Dense{.units = 64}, TanhSkip{}, TanhSkip{.initialScale = 0.25}, Output{.classes = 10}}});
  network.init();
  auto wrapper = ParallelWrapper::Builder(network).workers(workers).averagingFrequency(1).build();
  wrapper.fit(train, epochs);
  fmt::print("accuracy on other digits {:.4f}\n", wrapper.evaluate(test).accuracy());

  const std::string file = "own-layer.safetensors";
  network.save(file);
  Layer::registerType<TanhSkip>();  // so that it can be loaded from files
  const auto loaded = MultiLayerNetwork::load(file);
  if (!sameOutputs(network, *loaded, test)) throw Error("what was loaded predicts something else");
  fmt::print("saved: {}; loaded, it predicts the same, bit for bit\n", file);
}

}  // namespace

int main(int argc, char** argv) {
  int workers = 2;
  std::int64_t epochs = 3, examples = 3000;
  return example::runExample(
      argc, argv,
      "Adds a layer of your own to the library's: checks its gradient, trains a network\n"
      "that has it on digits that the program draws, saves and loads it.",
      {{"workers", &workers, "threads, each with a replica"},
       {"epochs", &epochs, "passes over the digits"},
       {"examples", &examples, "digits to train with, and as many to test with"}},
      [&] { run(workers, epochs, examples); });
}
