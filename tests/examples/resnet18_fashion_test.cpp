#include <doctest/doctest.h>
#include <fmt/format.h>

#include "muster/core/eval/evaluation.h"
#include "muster/core/nn/computation_graph.h"
#include "muster/datasets/generated_digits.h"
#include "tests/examples/sandbox.h"

namespace muster {
namespace {

using test::contains;

/// The program on a few images, with a narrow network.
class Resnet18Fashion : public test::Sandbox {
 public:
  Resnet18Fashion() : Sandbox(MUSTER_RESNET18_FASHION) {}

  static std::vector<std::string> small(const std::string& data, const std::string& epochs) {
    return {"--data", data, "--examples", "96", "--batch", "8", "--width", "4", "--epochs", epochs};
  }
};

TEST_CASE("resnet18_fashion trains with two workers, tests each epoch and saves") {
  const Resnet18Fashion program;
  const auto run = test::succeeded(program.run(Resnet18Fashion::small("generated", "2")));
  CHECK(run.out.starts_with("plan: 2 workers on cpu"));
  CHECK(contains(run.out, "averaging every iteration: 2 batches a round"));
  CHECK(contains(run.out, "\nepoch 1/2: loss "));
  CHECK(run.out.ends_with("\nsaved: resnet18.safetensors\n"));

  // The network in the file has the accuracy that the program printed, and the chapter's learning rate.
  const auto network = ComputationGraph::load(program.directory / "resnet18.safetensors");
  CHECK(network->epoch() == 2);
  CHECK(network->iteration() == 12);  // 12 batches an epoch, for two workers
  CHECK(network->configuration().updater.learningRate().at(0) == 0.2);
  GeneratedDigitsIterator digits(40, 96, 20, false);
  CHECK(contains(run.out, fmt::format("test accuracy {:.4f}\nsaved", network->evaluate(digits).accuracy())));

  const auto first = test::readFile(program.directory / "resnet18.safetensors");
  REQUIRE(program.run(Resnet18Fashion::small("generated", "2")).exit == 0);
  CHECK(first == test::readFile(program.directory / "resnet18.safetensors"));
}

TEST_CASE("CIFAR-10 is trained in colour, and data that are missing are an error") {
  const Resnet18Fashion program;
  const auto cifar10 = Resnet18Fashion::small("cifar10", "1");
  const auto missing = program.run(cifar10);
  CHECK(missing.exit == 1);
  CHECK(missing.out.empty());
  CHECK(contains(missing.err, "resnet18_fashion: "));
  for (const std::string name :
       {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"}) {
    const auto path = program.directory / (name + ".bin");
    test::writeFile(path, "");
    std::filesystem::resize_file(path, 10000 * 3073);  // zeros: black images of class 0
  }
  auto launch = program.launch(cifar10);
  launch.environment["MUSTER_DATA_DIR"] = program.directory.path().string();
  const auto run = test::succeeded(test::runProgram(MUSTER_RESNET18_FASHION, launch));
  CHECK(contains(run.out, "test accuracy 1.0000"));
  CHECK(ComputationGraph::load(program.directory / "resnet18.safetensors")->configuration().inputs[0].shape ==
        Shape{3, 32, 32});
}

}  // namespace
}  // namespace muster
