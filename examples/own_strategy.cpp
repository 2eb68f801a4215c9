// An averaging rule of your own, which the library does not have: replicas move only a part of the way to
// their mean, a larger part as training continues. The program compares it with plain averaging and saves the
// model.

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <string>

#include "muster/core/eval/evaluation.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/datasets/generated_digits.h"
#include "muster/parallel/parallel_wrapper.h"
#include "options.h"

using namespace muster;

namespace {

/// The options for the builder: `strategy(AnnealedAveraging{.frequency = 5})`.
struct AnnealedAveraging {
  std::int64_t frequency = 3;  ///< iterations of each worker between merges
  double firstKeep = 0.5;      ///< weight of a replica's own parameters at the first merge, in [0, 1]
  double halfLife = 100;       ///< iterations in which this weight halves

  void validate() const {
    require(frequency >= 1, "annealed averaging: frequency must be at least 1, got {}", frequency);
    require(firstKeep >= 0 && firstKeep <= 1, "annealed averaging: firstKeep must be in [0, 1], got {}",
            firstKeep);
    require(halfLife > 0, "annealed averaging: halfLife must be positive, got {}", halfLife);
  }
  std::unique_ptr<Strategy> make() const;
};

/// The rule, in the three functions that every rule has. Its decisions depend only on counters and it
/// computes only with operations, so every run gives the same bits, on the CPU and on GPUs.
class AnnealedAveragingStrategy final : public Strategy {
 public:
  explicit AnnealedAveragingStrategy(const AnnealedAveraging& options) : options_(options) {}

  std::string describe() const override {
    return fmt::format("annealed averaging every {} iterations", options_.frequency);
  }
  RoundPlan plan(const TrainingProgress&) override { return {.iterations = options_.frequency}; }

  /// Every worker calls this on its own thread when a round ends; each operation does the worker's part.
  void land(int /*fragment*/, const Round& round, MergeOps& ops) override {
    const SharedBlock& parameters = ops.block(BlockKind::Parameters);
    ops.mean(parameters.replicas, round.weights, parameters.mergedCopies, parameters.whole);
    const double keep =
        options_.firstKeep * std::exp2(-static_cast<double>(round.iteration) / options_.halfLife);
    ops.writeBack(parameters.mergedCopies, parameters.replicas, keep, parameters.whole);
    ops.mergeOthers(round.weights);  // momentum and statistics
  }

 private:
  const AnnealedAveraging options_;
};

std::unique_ptr<Strategy> AnnealedAveraging::make() const {
  return std::make_unique<AnnealedAveragingStrategy>(*this);
}

MultiLayerConfiguration network() {
  return {.seed = 1,
          .updater = Nesterovs{.learningRate = 0.02, .momentum = 0.9},
          .inputShape = {1, 28, 28},
          .layers = {Conv2d{.outChannels = 8, .kernel = 5, .activation = Activation::ReLU},
                     MaxPool2d{.kernel = 2}, Dense{.units = 64, .activation = Activation::ReLU},
                     Output{.classes = 10}}};
}

void run(int workers, std::int64_t epochs, std::int64_t examples) {
  GeneratedDigitsIterator train(32, examples, /*seed=*/20, true), test(32, examples, 20, false);
  const auto fit = [&](MultiLayerNetwork& model, auto strategy) {
    auto wrapper = ParallelWrapper::Builder(model).workers(workers).strategy(strategy).build();
    wrapper.fit(train, epochs);
    fmt::print("{}: accuracy on other digits {:.4f}\n", wrapper.plan(), wrapper.evaluate(test).accuracy());
  };
  MultiLayerNetwork own(network()), plain(network());
  own.init();
  plain.init();
  fit(plain, Averaging{.frequency = 3});
  fit(own, AnnealedAveraging{});

  const std::string file = "own-strategy.safetensors";
  own.save(file);
  fmt::print("saved: {}\n", file);
}

}  // namespace

int main(int argc, char** argv) {
  int workers = 2;
  std::int64_t epochs = 3, examples = 3000;
  return example::runExample(
      argc, argv,
      "Trains on digits that the program draws by an averaging rule of your own, beside\n"
      "plain averaging: replicas move a growing part of the way to their mean.",
      {{"workers", &workers, "threads, each with a replica"},
       {"epochs", &epochs, "passes over the digits"},
       {"examples", &examples, "digits to train with, and as many to test with"}},
      [&] { run(workers, epochs, examples); });
}
