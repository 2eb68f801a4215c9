#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "muster/core/io/safetensors.h"
#include "tests/examples/sandbox.h"

// A new head on weights with torchvision's names.

namespace muster {
namespace {

using test::Sandbox;

/// The largest difference of two tensors, relative to the first; infinity for other shapes.
double apart(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) return INFINITY;
  double worst = 0;
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    const double x = a.data<float>()[i], y = b.data<float>()[i];
    if (x != y) worst = std::max(worst, std::abs(x - y) / std::abs(x));
  }
  return worst;
}

TEST_CASE("a new head is trained on a frozen body") {
  const Sandbox program(MUSTER_FINE_TUNE);
  const auto run = program.succeeds("--examples 1500");
  CHECK_CONTAINS(run.out, "ResNet-18 of width 8; a new head for 5 classes");
  const auto at = run.out.rfind("other images ");
  REQUIRE(at != std::string::npos);
  CHECK(std::stod(run.out.substr(at + 13)) > 0.5);  // guessing is 0.2
  const auto before = readSafetensors(program.directory / "backbone.safetensors"),
             after = readSafetensors(program.directory / "fine-tuned.safetensors");
  REQUIRE(after.tensors.size() == before.tensors.size());
  int changed = 0;
  for (const auto& [name, values] : before.tensors) {
    CAPTURE(name);
    const double difference = apart(values, *after.find(name));
    if (name.starts_with("fc."))
      ++changed;
    else if (name.ends_with("running_var"))
      CHECK(difference <= 0x1p-22);  // converted there and back: two roundings
    else
      CHECK(difference == 0);
  }
  CHECK(changed == 2);
  CHECK(apart(*before.find("fc.weight"), *after.find("fc.weight")) > 0.01);

  // Another run starts from the first run's file and also trains the backbone.
  const auto again = program.succeeds(
      "--weights fine-tuned.safetensors --examples 200 --epochs 1 --backbone-rate 0.1 --model "
      "again.safetensors");
  CHECK_CONTAINS(again.out, "a new head for 10 classes");
  CHECK(apart(*before.find("conv1.weight"),
              *readSafetensors(program.directory / "again.safetensors").find("conv1.weight")) > 0);

  // The error names everything that does not fit.
  Safetensors broken = after;
  std::erase_if(broken.tensors, [](const auto& tensor) { return tensor.name == "bn1.weight"; });
  broken.add("bn1.scale", Tensor::zeros({8}));
  for (auto& [name, values] : broken.tensors)
    if (name == "layer1.0.bn1.bias") values = Tensor::zeros({9});
  writeSafetensors(program.directory / "broken.safetensors", broken);
  program.refuses(
      "--weights broken.safetensors --examples 200",
      "fine_tune: broken.safetensors: does not fit: it lacks: bn1.weight; it has what the network has not: "
      "bn1.scale; it has other tensors: layer1.0.bn1.bias is float32 [9] on cpu, here float32 [8] on cpu\n",
      1);
}

TEST_CASE("weights and data that cannot be used are refused before anything is trained") {
  const Sandbox program(MUSTER_FINE_TUNE);
  program.refuses("--weights missing", "fine_tune: missing: cannot be read: No such file or directory\n", 1);
  program.refuses("--data cifar10", "fine_tune: --data cifar10 needs --weights\n");
  CHECK(program.directory.names().empty());
}

}  // namespace
}  // namespace muster
