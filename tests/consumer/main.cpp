// The program on DESIGN.md's first page, on a few thousand digits, linked with the installed package.
#include <muster/core/eval/evaluation.h>
#include <muster/core/nn/multi_layer_network.h>
#include <muster/datasets/generated_digits.h>
#include <muster/datasets/mnist.h>
#include <muster/parallel/parallel_wrapper.h>

#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>

namespace {

using namespace muster;

/// MNIST where it is at hand, generated digits elsewhere.
std::unique_ptr<DataSetIterator> digits() {
  constexpr std::int64_t kExamples = 5000;  // not a multiple of the batch: the last round is a partial one
  if (std::getenv("MUSTER_DATA_DIR") != nullptr) {
    return std::make_unique<MnistDataSetIterator>(128, /*train=*/true, /*seed=*/12345,
                                                  DataOptions{.allowDownload = false, .limit = kExamples});
  }
  return std::make_unique<GeneratedDigitsIterator>(128, kExamples, /*seed=*/12345, /*train=*/true);
}

double accuracyAfterTraining() {
  const auto train = digits();

  muster::MultiLayerNetwork model(
      {.seed = 123,
       .updater = Nesterovs{.learningRate = 0.01, .momentum = 0.9},
       .l2 = 5e-4,
       .inputShape = {1, 28, 28},
       .layers = {Conv2d{.outChannels = 20, .kernel = {5, 5}}, MaxPool2d{.kernel = {2, 2}},
                  Conv2d{.outChannels = 50, .kernel = {5, 5}}, MaxPool2d{.kernel = {2, 2}},
                  Dense{.units = 500, .activation = Activation::ReLU}, Output{.classes = 10}}});
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

}  // namespace

int main() try {
  const double accuracy = accuracyAfterTraining();
  std::cout << "accuracy " << accuracy << '\n';
  return accuracy > 0.5 ? 0 : 1;  // guessing gives 0.1
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
