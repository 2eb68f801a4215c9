// Trains ResNet-18 on Fashion-MNIST with several workers at once and tests it after each epoch: the multi-GPU
// chapter of "Dive into Deep Learning". `resnet18_fashion --help` lists the options.

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "muster/core/data/image_transform.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/nn/models/resnet18.h"
#include "muster/datasets/cifar10.h"
#include "muster/datasets/generated_digits.h"
#include "muster/datasets/mnist.h"
#include "muster/parallel/parallel_wrapper.h"
#include "options.h"

using namespace muster;

namespace {

struct Options {
  std::string data = "fashion", device = "cpu", model = "resnet18.safetensors";
  int workers = 2;
  std::int64_t frequency = 1, batch = 256, epochs = 10, width = 64, examples = 60'000, seed = 123;
};

std::unique_ptr<ImageSetIterator> images(const Options& o, bool train) {
  const auto seed = static_cast<std::uint64_t>(o.seed);
  const DataOptions limit{.limit = o.examples};
  if (o.data == "fashion") return std::make_unique<FashionMnistDataSetIterator>(o.batch, train, seed, limit);
  if (o.data == "cifar10") return std::make_unique<Cifar10DataSetIterator>(o.batch, train, seed, limit);
  require(o.data == "generated", "--data must be fashion, cifar10 or generated, got {}", o.data);
  return std::make_unique<GeneratedDigitsIterator>(o.batch, o.examples, /*seed=*/20, train);
}

void run(const Options& o) {
  const auto train = images(o, true), test = images(o, false);
  const Shape& image = train->set()->imageShape();  // [channels, height, width]

  // As in "Dive into Deep Learning": normal weights, plain SGD, its rate in proportion to the workers.
  auto configuration =
      resnet18(/*classes=*/10, image[0],
               {.imageSize = {image[1], image[2]}, .width = o.width, .init = Init::normal(0.01)});
  configuration.seed = static_cast<std::uint64_t>(o.seed);
  configuration.updater = Sgd{.learningRate = 0.1 * o.workers};
  ComputationGraph network(configuration);
  network.init();

  // Photographs are moved by up to 4 pixels and mirrored, at random in each epoch.
  TransformingIterator augmented(*train, {RandomCrop{.padding = 4}, RandomFlip{}},
                                 static_cast<std::uint64_t>(o.seed));
  DataSetIterator& data = o.data == "cifar10" ? static_cast<DataSetIterator&>(augmented) : *train;

  auto wrapper = ParallelWrapper::Builder(network)
                     .workers(o.workers)
                     .averagingFrequency(o.frequency)
                     .devices(Device::parseList(o.device))
                     .build();
  fmt::print("plan: {}; {} parameters\n", wrapper.plan(), network.parameterCount());
  for (std::int64_t epoch = 1; epoch <= o.epochs; ++epoch) {
    wrapper.fit(data);
    fmt::print("epoch {}/{}: loss {:.4f}, test accuracy {:.4f}\n", epoch, o.epochs, network.score(),
               wrapper.evaluate(*test).accuracy());
    network.save(o.model);
  }
  fmt::print("saved: {}\n", o.model);
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  return example::runExample(
      argc, argv,
      "Trains ResNet-18 with several workers at once. Merged every iteration, k workers take the step of "
      "one\n"
      "worker on the joined batch, except for the statistics of batch normalisation. Two GPUs:\n"
      "--workers 2 --device cuda:0,cuda:1; muster train has more options.",
      {{"workers", &o.workers, "threads, each with a replica; worker i is on device i mod D of --device"},
       {"averaging-frequency", &o.frequency, "iterations of each worker between averages"},
       {"device", &o.device, "cpu, or GPUs, as in cuda:0,cuda:1"},
       {"data", &o.data, "fashion, cifar10 or generated"},
       {"examples", &o.examples, "at most so many, to train and to test with"},
       {"batch", &o.batch, "examples of a worker's step"},
       {"epochs", &o.epochs, "passes over the images"},
       {"width", &o.width, "channels of the first stage; fewer for a small machine"},
       {"seed", &o.seed, "of the first weights, the order of the images and their augmentation"},
       {"model", &o.model, "the trained network, in the safetensors format"}},
      [&] { run(o); });
}
