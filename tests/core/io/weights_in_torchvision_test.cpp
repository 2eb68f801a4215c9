#include <fmt/format.h>

#include "muster/core/io/safetensors.h"
#include "muster/core/io/weights.h"
#include "muster/core/nn/models/resnet18.h"
#include "tests/support/skip.h"
#include "tests/support/test.h"

// ResNet-18's weights from torchvision's own file and back.

namespace muster {
namespace {

TEST_CASE("ResNet-18 computes the same as torchvision's with its weights, and torchvision loads them back") {
  const test::TemporaryDirectory directory;
  const char* const python = std::getenv("MUSTER_TORCH_PYTHON");
  const auto call = [&](const char* act) {
    return WEXITSTATUS(std::system(fmt::format("'{}' -B '{}' {} '{}'", python ? python : "python3",
                                               MUSTER_TORCHVISION_RESNET18, act, directory.path().string())
                                       .c_str()));
  };
  const int made = call("make");
  if (made == 77 || made == 127)
    return test::skip(
        "there is no python3 with torchvision and safetensors (MUSTER_TORCH_PYTHON names another)");
  REQUIRE(made == 0);

  auto graph = resnet18(7, 3, {.imageSize = {64, 64}, .largeImages = true});
  graph.vertices.back().layer =  // its logits
      Output{.classes = 7, .loss = Loss::MeanSquaredError, .activation = Activation::Identity};
  ComputationGraph network(graph);
  network.init();
  loadWeights(network, directory / "there.safetensors", {.layers = resnet18InTorchvision()});
  const auto run = readSafetensors(directory / "run.safetensors");
  const Tensor here = network.output(*run.find("images")), there = *run.find("logits");
  REQUIRE(here.shape() == there.shape());
  double apart = 0, largest = 0;
  for (std::int64_t i = 0; i < there.elements(); ++i) {
    apart = std::max(apart, std::abs(double{here.data<float>()[i]} - there.data<float>()[i]));
    largest = std::max(largest, std::abs(double{there.data<float>()[i]}));
  }
  // Twenty convolutions in float32, added up in another order: as for onnxruntime.
  CHECK(apart <= 1e-5 * largest);
  CHECK(largest > 0);

  saveWeights(network, directory / "back.safetensors", {.layers = resnet18InTorchvision()});
  CHECK(call("read") == 0);
}

}  // namespace
}  // namespace muster
