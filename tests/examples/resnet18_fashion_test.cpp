#include <doctest/doctest.h>

#include "muster/core/eval/evaluation.h"
#include "muster/core/nn/computation_graph.h"
#include "muster/datasets/generated_digits.h"
#include "tests/examples/sandbox.h"

namespace muster {
namespace {

using test::Sandbox;

/// A few images, with a narrow network.
constexpr const char* kSmall = " --examples 96 --batch 8 --width 4";

TEST_CASE("resnet18_fashion trains with two workers, tests each epoch and saves") {
  const Sandbox program(MUSTER_RESNET18_FASHION);
  const auto line = std::string("--data generated --epochs 2") + kSmall;
  const auto run = program.succeeds(line);
  CHECK(run.out.starts_with("plan: 2 workers on cpu"));
  CHECK_CONTAINS(run.out, "averaging every iteration: 2 batches a round");
  CHECK_CONTAINS(run.out, "\nepoch 1/2: loss ");
  CHECK(run.out.ends_with("\nsaved: resnet18.safetensors\n"));

  // The network in the file has the accuracy that the program printed, and the chapter's learning rate.
  const auto network = ComputationGraph::load(program.directory / "resnet18.safetensors");
  CHECK(network->epoch() == 2);
  CHECK(network->iteration() == 12);  // 12 batches an epoch, for two workers
  CHECK(network->configuration().updater.learningRate().at(0) == 0.2);
  GeneratedDigitsIterator digits(40, 96, 20, false);
  CHECK_CONTAINS(run.out, fmt::format("test accuracy {:.4f}\nsaved", network->evaluate(digits).accuracy()));

  const auto first = program.read("resnet18.safetensors");
  program.succeeds(line);
  CHECK(first == program.read("resnet18.safetensors"));
}

TEST_CASE("CIFAR-10 is trained in colour, and data that are missing are an error") {
  Sandbox program(MUSTER_RESNET18_FASHION);
  const auto line = std::string("--data cifar10 --epochs 1") + kSmall;
  const auto missing = program(line);
  CHECK(missing.out == "");
  CHECK_CONTAINS(test::errorOf(missing, 1), "resnet18_fashion: ");
  for (const char* name :
       {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"})
    program.write(std::string(name) + ".bin", std::string(10000 * 3073, '\0'));  // black images of class 0
  program.environment["MUSTER_DATA_DIR"] = program.directory.path().string();
  CHECK_CONTAINS(program.succeeds(line).out, "test accuracy 1.0000");
  CHECK(ComputationGraph::load(program.directory / "resnet18.safetensors")->configuration().inputs[0].shape ==
        Shape{3, 32, 32});
}

}  // namespace
}  // namespace muster
