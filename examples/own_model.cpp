// A model of your own: a class with three functions that ParallelWrapper trains like any network. It
// computes LeNet as lenet_from_scratch does, with operations alone; it could also call another library.
// `own_model --help` lists the options.

#include <fmt/format.h>

#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "examples/lenet_from_scratch/lenet.h"
#include "examples/support/small_training.h"
#include "muster/core/base/interrupt.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/eval/same_outputs.h"
#include "muster/core/io/safetensors.h"
#include "muster/core/nn/model.h"
#include "muster/core/ops/activation.h"
#include "muster/datasets/generated_digits.h"
#include "muster/parallel/parallel_wrapper.h"

using namespace muster;

namespace {

constexpr std::uint64_t kDrawing = 20;  // the seed of the generated digits

constexpr std::string_view kIntroduction =
    R"(Trains a model of your own, a class with three functions, with several workers on digits that the program
draws, saves its parameters and loads them again.
)";

using example::LeNet;

/// The three functions that a model must have are `replicate`, `gradient` and `blocks`; `output` is for
/// testing it. Updater, counters and merging are the library's.
class OwnModel final : public Model {
 public:
  explicit OwnModel(TrainingOptions training, std::uint64_t seed, Context* context = nullptr)
      : Model(std::move(training), context), seed_(seed) {
    // One flat block of parameters and one of gradients, with the same segments.
    const auto initial = example::initialParameters(seed);
    const auto table = std::make_shared<SegmentTable>();
    for (std::size_t p = 0; p < initial.size(); ++p)
      table->add({.name = std::string(example::kParameterNames[p]), .shape = initial[p].shape()});
    blocks_ = {StateBlock::zeros("parameters", BlockKind::Parameters, MergeRule::Average, table),
               StateBlock::zeros("gradients", BlockKind::Gradients, MergeRule::Keep, table)};
    for (std::size_t p = 0; p < initial.size(); ++p) {
      parameters_.push_back(blocks_[0].segment(table->segments[p]));
      gradients_.push_back(blocks_[1].segment(table->segments[p]));
      copy(initial[p], parameters_[p]);
    }
  }

  /// Called for each worker, on its thread.
  std::unique_ptr<Model> replicate(Context& context) const override {
    return std::make_unique<OwnModel>(trainingOptions(), seed_, &context);
  }

  /// Computes the mean loss of the batch and writes its gradient to the block of gradients.
  StepTicket gradient(const Batch& batch) override {
    const auto examples = static_cast<double>(batch.examples());
    LeNet& lenet = network(batch.examples());
    lenet.forward(batch.features[0].value, parameters_);
    const double loss = lenet.backward(batch.labels[0].value, examples, parameters_, gradients_);
    return StepTicket({.score = loss / examples, .weight = examples});
  }

  std::span<StateBlock> blocks() override { return blocks_; }

  /// Writes each class's probability, [N, 10].
  void output(const Batch& batch, Tensor& out) override {
    const Tensor& logits = network(batch.examples()).forward(batch.features[0].value, parameters_);
    out.resize(logits.shape(), DType::Float32);
    activationForward(Activation::Softmax, logits, out, context());
  }

  void save(const std::filesystem::path& path) {
    Safetensors file;
    for (std::size_t p = 0; p < parameters_.size(); ++p)
      file.add(std::string(example::kParameterNames[p]), parameters_[p]);
    writeSafetensors(path, file);
  }
  void load(const std::filesystem::path& path) {
    const Safetensors file = readSafetensors(path);
    for (std::size_t p = 0; p < parameters_.size(); ++p) {
      const Tensor* const values = file.find(example::kParameterNames[p]);
      if (values == nullptr) throw FileError(path, fmt::format("has no {}", example::kParameterNames[p]));
      copy(*values, parameters_[p]);
    }
  }

 private:
  /// LeNet for a batch size; planned at the first batch of this size.
  LeNet& network(std::int64_t examples) {
    const ContextScope scope(context());
    return networks_.try_emplace(examples, examples, context()).first->second;
  }

  std::uint64_t seed_;
  std::vector<StateBlock> blocks_;              // parameters, gradients
  std::vector<Tensor> parameters_, gradients_;  // [Parameter], views of the blocks
  std::map<std::int64_t, LeNet> networks_;      // [batch size]
};

int run(const example::SmallTraining& options) {
  const auto seed = static_cast<std::uint64_t>(options.seed);
  const GeneratedDigitsIterator digits(32, options.examples, kDrawing, true);
  ImageSetIterator train(digits.set(), 32, seed);
  GeneratedDigitsIterator test(32, options.examples, kDrawing, false);
  const TrainingOptions training{.updater = Nesterovs{.learningRate = 0.02, .momentum = 0.9}};
  OwnModel model(training, seed);
  auto wrapper = ParallelWrapper::Builder(model).workers(options.workers).averagingFrequency(3).build();
  fmt::print("plan: {}\n", wrapper.plan());
  const auto fit = [&](const std::stop_token& stop) {
    for (std::int64_t epoch = 1; epoch <= options.epochs; ++epoch) {
      wrapper.fit(train, 1, stop);
      if (stop.stop_requested()) return;
      fmt::print("epoch {}/{}: loss {:.4f}, accuracy on other digits {:.4f}\n", epoch, options.epochs,
                 model.score(), wrapper.evaluate(test).accuracy());
    }
  };
  if (!example::trainAndSave(options, model, fit, [&](const auto& file) { model.save(file); }))
    return kInterruptedExit;

  OwnModel loaded(training, seed + 1);  // has other initial parameters
  loaded.load(options.model);
  const bool same = sameOutputs(model, loaded, test);
  fmt::print("saved and loaded: {}; its outputs are {}\n", options.model,
             same ? "the same, bit for bit" : "others");
  return same ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return example::runSmallTraining(argc, argv, "own_model", kIntroduction, run);
}
