#include <fmt/format.h>

#include "muster/core/base/random.h"
#include "muster/core/io/safetensors.h"
#include "muster/core/nn/models/lenet.h"
#include "tests/support/skip.h"
#include "tests/support/test.h"

// A saved model can be used without muster: NumPy computes what it predicts from the file alone.

namespace muster {
namespace {

TEST_CASE("NumPy computes LeNet's outputs from its file") {
  const test::TemporaryDirectory directory;
  MultiLayerNetwork network(lenet(10));
  network.init();
  const RandomStream random(5, "numpy");
  std::uint64_t index = 0;
  for (auto& value : network.block(BlockKind::Parameters).values.span<float>())  // biases, too, begin at 0
    value += 0.02f * static_cast<float>(random.normal(index++));
  const Tensor images = Tensor::empty({5, 1, 28, 28});
  for (float& pixel : images.span<float>()) pixel = static_cast<float>(random.uniform(index++));
  network.save(directory / "lenet.safetensors");
  Safetensors run;
  run.add("images", images);
  run.add("outputs", network.output(images));
  writeSafetensors(directory / "run.safetensors", run);
  const char* const python = std::getenv("MUSTER_NUMPY_PYTHON");
  const auto command = fmt::format(
      "'{}' -B '{}' '{}' '{}' '{}'", python ? python : "python3", MUSTER_LENET_IN_NUMPY, MUSTER_READ_RESULTS,
      (directory / "lenet.safetensors").string(), (directory / "run.safetensors").string());
  const int status = WEXITSTATUS(std::system(command.c_str()));
  if (status == 77 || status == 127)
    return test::skip("there is no python3 with NumPy (MUSTER_NUMPY_PYTHON names another)");
  CHECK(status == 0);
}

}  // namespace
}  // namespace muster
