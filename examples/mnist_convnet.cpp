// Trains a convolutional network on MNIST with two workers that are averaged every 3 iterations: the
// acceptance test of Deeplearning4j's ParallelWrapper, and the README's program. `muster train` has all
// options.

#include <fmt/format.h>

#include <cstdint>

#include "muster/core/eval/evaluation.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/datasets/mnist.h"
#include "muster/parallel/parallel_wrapper.h"
#include "options.h"

using namespace muster;

namespace {

void run(int workers, std::int64_t averagingFrequency, std::int64_t epochs) {
  MnistDataSetIterator train(/*batch=*/128, /*train=*/true, /*seed=*/123);
  MnistDataSetIterator test(/*batch=*/128, /*train=*/false, /*seed=*/123);

  MultiLayerNetwork network({
      .seed = 123,
      .updater = Nesterovs{.learningRate = 0.01, .momentum = 0.9},
      .l2 = 5e-4,
      .inputShape = {1, 28, 28},
      .layers = {Conv2d{.outChannels = 20, .kernel = {5, 5}}, MaxPool2d{.kernel = {2, 2}},
                 Conv2d{.outChannels = 50, .kernel = {5, 5}}, MaxPool2d{.kernel = {2, 2}},
                 Dense{.units = 500, .activation = Activation::ReLU}, Output{.classes = 10}},
  });
  network.init();

  auto wrapper =
      ParallelWrapper::Builder(network).workers(workers).averagingFrequency(averagingFrequency).build();
  fmt::print("plan: {}\n", wrapper.plan());
  for (std::int64_t epoch = 1; epoch <= epochs; ++epoch) {
    wrapper.fit(train);  // network now holds the averaged parameters
    fmt::print("epoch {}/{}: loss {:.4f}, test accuracy {:.4f}\n", epoch, epochs, network.score(),
               wrapper.evaluate(test).accuracy());
  }
  network.save("convnet.safetensors");
  fmt::print("saved: convnet.safetensors\n");
}

}  // namespace

int main(int argc, char** argv) {
  int workers = 2;
  std::int64_t averagingFrequency = 3, epochs = 3;
  return example::runExample(argc, argv,
                             "Trains a convolutional network on MNIST with several workers at once;\n"
                             "muster train has more options.",
                             {{"workers", &workers, "threads, each with a replica of the network"},
                              {"averaging-frequency", &averagingFrequency, "iterations between averages"},
                              {"epochs", &epochs, "passes over the images"}},
                             [&] { run(workers, averagingFrequency, epochs); });
}
