// A model of your own: a class with three functions, `replicate`, `gradient` and `blocks`, that
// ParallelWrapper trains like any network. It is a network of two dense layers, written with operations; it
// could also call another library. The program trains it with several workers, saves its parameters and loads
// them.

#include <fmt/format.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/core/eval/evaluation.h"
#include "muster/core/eval/same_outputs.h"
#include "muster/core/io/safetensors.h"
#include "muster/core/nn/initializer.h"
#include "muster/core/nn/model.h"
#include "muster/core/ops/activation.h"
#include "muster/core/ops/dense.h"
#include "muster/core/ops/loss.h"
#include "muster/datasets/generated_digits.h"
#include "muster/parallel/parallel_wrapper.h"
#include "options.h"

using namespace muster;

namespace {

constexpr std::int64_t kPixels = 28 * 28, kHidden = 64, kClasses = 10;

enum : std::size_t { kW1, kB1, kW2, kB2, kParameters };
const std::array<std::string, kParameters> kNames{"hidden.weight", "hidden.bias", "digit.weight",
                                                  "digit.bias"};
const std::array<Shape, kParameters> kShapes{
    Shape{kHidden, kPixels}, {kHidden}, {kClasses, kHidden}, {kClasses}};

/// What a batch size needs: planned operations and memory.
struct Plans {
  Plans(std::int64_t n, Context& context)
      : dense1(planDense({n, kPixels, kHidden}, context)),
        dense2(planDense({n, kHidden, kClasses}, context)) {
    for (Tensor* t : {&hidden, &gradHidden}) *t = Tensor::empty({n, kHidden});
    for (Tensor* t : {&logits, &gradLogits}) *t = Tensor::empty({n, kClasses});
  }
  std::unique_ptr<DensePlan> dense1, dense2;
  Tensor hidden, gradHidden, logits, gradLogits;
};

/// The updater, the counters and merging are the library's; `output` is for testing it.
class OwnModel final : public Model {
 public:
  explicit OwnModel(TrainingOptions training, Context* context = nullptr)
      : Model(std::move(training), context) {
    // One flat block of parameters and one of gradients, with the same segments.
    const auto table = std::make_shared<SegmentTable>();
    for (std::size_t p = 0; p < kParameters; ++p) table->add({.name = kNames[p], .shape = kShapes[p]});
    blocks_ = {StateBlock::zeros("parameters", BlockKind::Parameters, MergeRule::Average, table),
               StateBlock::zeros("gradients", BlockKind::Gradients, MergeRule::Keep, table)};
    for (const Segment& segment : table->segments) {
      parameters_.push_back(blocks_[0].segment(segment));
      gradients_.push_back(blocks_[1].segment(segment));
    }
    for (const std::size_t p : {kW1, kW2})
      initialize(parameters_[p], Init::xavier(), kShapes[p][1], kShapes[p][0], /*seed=*/1, kNames[p]);
  }

  /// Called for each worker, on its thread; the caller copies the parameters.
  std::unique_ptr<Model> replicate(Context& context) const override {
    return std::make_unique<OwnModel>(trainingOptions(), &context);
  }

  /// Computes the mean loss of the batch and writes its gradient to the block of gradients.
  StepTicket gradient(const Batch& batch) override {
    const ContextScope scope(context());
    auto& [dense1, dense2, hidden, gradHidden, logits, gradLogits] = propagate(batch);
    const auto value =
        loss(Loss::NegativeLogLikelihood, logits, batch.labels[0].value, {}, gradLogits, 0, context());
    dense2->backwardWeights(hidden, gradLogits, gradients_[kW2], gradients_[kB2]);
    dense2->backwardData(gradLogits, parameters_[kW2], gradHidden);
    activationBackward(Activation::ReLU, {}, hidden, gradHidden, gradHidden, context());
    dense1->backwardWeights(rowsOf(batch), gradHidden, gradients_[kW1], gradients_[kB1]);
    return StepTicket({.score = value.sum / value.weight, .weight = value.weight});
  }

  std::span<StateBlock> blocks() override { return blocks_; }

  /// Writes each class's probability, [N, 10].
  void output(const Batch& batch, Tensor& out) override {
    const ContextScope scope(context());
    const Tensor& logits = propagate(batch).logits;
    out.resize(logits.shape(), DType::Float32);
    activationForward(Activation::Softmax, logits, out, context());
  }

  std::vector<Tensor>& parameters() { return parameters_; }

 private:
  static Tensor rowsOf(const Batch& batch) {
    return batch.features[0].value.reshape({batch.examples(), kPixels});
  }

  Plans& propagate(const Batch& batch) {
    const std::int64_t n = batch.examples();
    Plans& p = plans_.try_emplace(n, n, context()).first->second;
    p.dense1->forward(rowsOf(batch), parameters_[kW1], parameters_[kB1], p.hidden);
    activationForward(Activation::ReLU, p.hidden, p.hidden, context());
    p.dense2->forward(p.hidden, parameters_[kW2], parameters_[kB2], p.logits);
    return p;
  }

  std::vector<StateBlock> blocks_;              // parameters, gradients
  std::vector<Tensor> parameters_, gradients_;  // views of the blocks
  std::map<std::int64_t, Plans> plans_;         // [batch size]
};

void run(int workers, std::int64_t epochs, std::int64_t examples) {
  GeneratedDigitsIterator train(32, examples, /*seed=*/20, true), test(32, examples, 20, false);
  const TrainingOptions training{.updater = Nesterovs{.learningRate = 0.02, .momentum = 0.9}};
  OwnModel model(training), loaded(training);
  auto wrapper = ParallelWrapper::Builder(model).workers(workers).averagingFrequency(3).build();
  fmt::print("plan: {}\n", wrapper.plan());
  wrapper.fit(train, epochs);
  fmt::print("accuracy on other digits {:.4f}\n", wrapper.evaluate(test).accuracy());

  const std::string path = "own-model.safetensors";
  Safetensors file;
  for (std::size_t p = 0; p < kParameters; ++p) file.add(kNames[p], model.parameters()[p]);
  writeSafetensors(path, file);
  const Safetensors again = readSafetensors(path);
  for (std::size_t p = 0; p < kParameters; ++p) copy(*again.find(kNames[p]), loaded.parameters()[p]);
  if (!sameOutputs(model, loaded, test)) throw Error("what was loaded predicts something else");
  fmt::print("saved: {}; loaded, it predicts the same, bit for bit\n", path);
}

}  // namespace

int main(int argc, char** argv) {
  int workers = 2;
  std::int64_t epochs = 3, examples = 3000;
  return example::runExample(
      argc, argv,
      "Trains a model of your own, a class with three functions, with several workers on\n"
      "digits that the program draws, saves its parameters and loads them.",
      {{"workers", &workers, "threads, each with a replica"},
       {"epochs", &epochs, "passes over the digits"},
       {"examples", &examples, "digits to train with, and as many to test with"}},
      [&] { run(workers, epochs, examples); });
}
