// The README's program.
#include <doctest/doctest.h>

#include "muster/core/eval/evaluation.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/datasets/mnist.h"
#include "tests/examples/sandbox.h"
#include "tests/support/sanitizers.h"
#include "tests/support/skip.h"

namespace muster {

using test::Sandbox;

TEST_CASE("mnist_convnet without MNIST ends with a sentence, and names muster train for other options") {
  const Sandbox program(MUSTER_MNIST_CONVNET);
  CHECK_CONTAINS(test::errorOf(program(""), 1),
                 "mnist_convnet: mnist: train-images-idx3-ubyte.gz is not in ");
  for (const std::string option : {"--resume", "--page", "--mode"})
    program.refuses(option + " c", "mnist_convnet: there is no option " + option +
                                       ": --help lists all, and muster train has more\n");
  CHECK(program.directory.names().empty());
}

TEST_CASE("mnist_convnet trains, tests and saves a network on MNIST") {
  const char* const data = test::realDataDir();
  if (test::kSanitized) return test::skip("an epoch of MNIST takes too long under a sanitizer");
  if (data == nullptr) return test::skip("the real MNIST is needed; MUSTER_DATA_DIR says where it is");
  Sandbox program(MUSTER_MNIST_CONVNET);
  program.environment["MUSTER_DATA_DIR"] = std::filesystem::absolute(data).string();
  const auto run = program.succeeds("--workers 1 --epochs 1");
  CHECK_CONTAINS(run.out, "\nepoch 1/1: loss 0.");
  CHECK_CONTAINS(run.out, "saved: convnet.safetensors\n");
  MnistDataSetIterator images(128, /*train=*/false, /*seed=*/0, {.directory = data});
  const double accuracy =
      MultiLayerNetwork::load(program.directory / "convnet.safetensors")->evaluate(images).accuracy();
  CHECK(accuracy > 0.95);
  CHECK_CONTAINS(run.out, fmt::format("test accuracy {:.4f}\n", accuracy));
}

}  // namespace muster
