// A layer of your own: its forward and backward pass, written with the operations of core/ops. The program
// checks its gradient, trains it with two workers, saves it and loads it.
// `own_layer --help` lists the options.

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "examples/support/small_training.h"
#include "muster/core/base/interrupt.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/eval/same_outputs.h"
#include "muster/core/nn/gradient_check.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/core/ops/activation.h"
#include "muster/core/ops/axpy.h"
#include "muster/core/ops/dense.h"
#include "muster/datasets/generated_digits.h"
#include "muster/parallel/parallel_wrapper.h"

using namespace muster;

namespace {

constexpr std::uint64_t kDrawing = 20;  // the seed of the generated digits

constexpr std::string_view kIntroduction =
    R"(Adds a layer of your own to the library's: checks its gradient, trains a network that has it on digits that
the program draws, saves the network and loads it again.
)";

/// The passes of a TanhSkip for one batch size: h = tanh(W x + b), y = x + alpha h. Allocates all memory
/// here, so that a training step allocates nothing.
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
    gradients_[kAlpha].data<float>()[0] = static_cast<float>(dot(gradY, hidden_));
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

  /// Always sums in the same order, so that every run gives the same bits.
  static double dot(const Tensor& a, const Tensor& b) {
    double sum = 0;
    for (std::int64_t i = 0; i < a.elements(); ++i) sum += double{a.data<float>()[i]} * b.data<float>()[i];
    return sum;
  }

  Context& context_;
  std::unique_ptr<DensePlan> dense_;
  std::vector<Tensor> parameters_, gradients_;  // views of the network's blocks
  Tensor hidden_, gradHidden_;
};

/// The layer: y = x + alpha tanh(W x + b), [F] to [F], with a learnable factor alpha. It has options,
/// parameters, and a program for a batch. It needs no base class: a struct with these members is a layer.
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

/// Compares the layer's gradient with central differences of the loss. A layer with parameters comes before
/// it, so that the gradient of its input is checked, too.
bool checkLayer() {
  MultiLayerNetwork network(
      {.seed = 1, .inputShape = {6}, .layers = {Dense{.units = 5}, TanhSkip{}, Output{.classes = 3}}});
  network.init();
  Batch batch;
  Tensor& features = Batch::ensure(batch.features, "features", {4, 6});
  Tensor& labels = Batch::ensure(batch.labels, "labels", {4}, DType::Int64);
  for (int i = 0; i < 24; ++i) features.data<float>()[i] = 0.1f * static_cast<float>(i * i % 19 - 9);
  for (int i = 0; i < 4; ++i) labels.data<std::int64_t>()[i] = i % 3;
  const auto result = checkGradients(network, batch);
  fmt::print("gradient check: {} elements, {}; the worst is {}\n", result.checked,
             result.passed ? "all as central differences have them" : "failed", result.toString());
  return result.passed;
}

MultiLayerConfiguration networkWith(const example::SmallTraining& options) {
  return {
      .seed = static_cast<std::uint64_t>(options.seed),
      .updater = Nesterovs{.learningRate = 0.02, .momentum = 0.9},
      .inputShape = {1, 28, 28},
      .layers = {Conv2d{.outChannels = 8, .kernel = {5, 5}, .stride = {2, 2}, .activation = Activation::ReLU},
                 MaxPool2d{.kernel = {2, 2}}, Dense{.units = 64}, TanhSkip{}, TanhSkip{.initialScale = 0.25},
                 Output{.classes = 10}}};
}

int run(const example::SmallTraining& options) {
  if (!checkLayer()) return 1;

  const auto seed = static_cast<std::uint64_t>(options.seed);
  const GeneratedDigitsIterator digits(32, options.examples, kDrawing, true);
  ImageSetIterator train(digits.set(), 32, seed);
  GeneratedDigitsIterator test(32, options.examples, kDrawing, false);
  MultiLayerNetwork network(networkWith(options));
  network.init();
  fmt::print("\n{}", network.summary());
  auto wrapper = ParallelWrapper::Builder(network).workers(options.workers).averagingFrequency(1).build();
  const auto fit = [&](const std::stop_token& stop) {
    for (std::int64_t epoch = 1; epoch <= options.epochs; ++epoch) {
      wrapper.fit(train, 1, stop);
      if (stop.stop_requested()) return;
      fmt::print("epoch {}/{}: loss {:.4f}, accuracy on other digits {:.4f}\n", epoch, options.epochs,
                 network.score(), wrapper.evaluate(test).accuracy());
    }
  };
  if (!example::trainAndSave(options, network, fit, [&](const auto& file) { network.save(file); }))
    return kInterruptedExit;

  Layer::registerType<TanhSkip>();  // so that it can be loaded from files
  const auto loaded = MultiLayerNetwork::load(options.model);
  const bool same = sameOutputs(network, *loaded, test);
  fmt::print("saved and loaded: {}; its outputs are {}\n", options.model,
             same ? "the same, bit for bit" : "others");
  return same ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return example::runSmallTraining(argc, argv, "own_layer", kIntroduction, run);
}
