// The program on DESIGN.md's first page, on a few thousand digits, linked with the installed package.
#include <muster/core/comparison/comparison.h>
#include <muster/core/comparison/run_recorder.h>
#include <muster/core/eval/evaluation.h>
#include <muster/core/nn/multi_layer_network.h>
#include <muster/datasets/generated_digits.h>
#include <muster/datasets/mnist.h>
#include <muster/parallel/parallel_wrapper.h>

#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <string>

namespace {

using namespace muster;

/// MNIST if available, otherwise generated digits.
std::unique_ptr<DataSetIterator> digits() {
  constexpr std::int64_t kExamples = 5000;  // not a multiple of the batch: the last round is a partial one
  if (std::getenv("MUSTER_DATA_DIR") != nullptr) {
    return std::make_unique<MnistDataSetIterator>(128, /*train=*/true, /*seed=*/12345,
                                                  DataOptions{.allowDownload = false, .limit = kExamples});
  }
  return std::make_unique<GeneratedDigitsIterator>(128, kExamples, /*seed=*/12345, /*train=*/true);
}

/// A user-defined strategy: replicas move halfway to their mean, and the user's model gets the mean.
struct HalfWay {
  void validate() const {}
  std::unique_ptr<Strategy> make() const;
};

class HalfWayStrategy final : public Strategy {
 public:
  std::string describe() const override { return "half of the way to the mean, every 3 iterations"; }
  RoundPlan plan(const TrainingProgress&) override { return {.iterations = 3}; }
  void land(int, const Round& round, MergeOps& ops) override {
    const SharedBlock& parameters = ops.block(BlockKind::Parameters);
    const auto all = Fragment::whole(parameters.mergedCopy().elements());
    ops.mean(parameters.replicas, round.weights, parameters.mergedCopies, all);
    ops.writeBack(parameters.mergedCopies, parameters.replicas, /*keep=*/0.5, all);
    ops.mergeOthers(round.weights);
  }
};

std::unique_ptr<Strategy> HalfWay::make() const {
  return std::make_unique<HalfWayStrategy>();
}

MultiLayerConfiguration convnet() {
  return {.seed = 123,
          .updater = Nesterovs{.learningRate = 0.01, .momentum = 0.9},
          .l2 = 5e-4,
          .inputShape = {1, 28, 28},
          .layers = {Conv2d{.outChannels = 20, .kernel = {5, 5}}, MaxPool2d{.kernel = {2, 2}},
                     Conv2d{.outChannels = 50, .kernel = {5, 5}}, MaxPool2d{.kernel = {2, 2}},
                     Dense{.units = 500, .activation = Activation::ReLU}, Output{.classes = 10}}};
}

double accuracyAfterTraining() {
  const auto train = digits();

  muster::MultiLayerNetwork model(convnet());
  model.init();

  auto wrapper = muster::ParallelWrapper::Builder(model)
                     .workers(2)
                     .averagingFrequency(3)
                     .prefetchBuffer(24)
                     .reportScoreAfterAveraging(true)
                     .build();
  wrapper.fit(*train, 3);

  return model.evaluate(*train).accuracy();
}

/// As a comparison records it.
double accuracyWithOwnStrategy() {
  const auto train = digits(), test = digits();
  MultiLayerNetwork model(convnet());
  model.init();
  const auto recorder = std::make_shared<RunRecorder>(*test, RunRecorderOptions{.arm = "half way"});
  auto wrapper = ParallelWrapper::Builder(model).workers(2).strategy(HalfWay{}).listeners({recorder}).build();
  wrapper.fit(*train, 3);
  Comparison comparison{.title = "A rule of its own"};
  comparison.add(recorder->finish(wrapper));
  return comparison.summarise().arms.front().score.mean;
}

}  // namespace

int main() try {
  const double averaged = accuracyAfterTraining(), own = accuracyWithOwnStrategy();
  std::cout << "accuracy " << averaged << ", with a strategy of its own " << own << '\n';
  return averaged > 0.5 && own > 0.5 ? 0 : 1;  // guessing gives 0.1
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
