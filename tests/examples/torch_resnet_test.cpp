#include <doctest/doctest.h>

#include "tests/examples/sandbox.h"

// A libtorch module as the program trains it.

namespace muster {
namespace {

using test::Sandbox;

double after(const std::string& text, const std::string& label) {
  const auto at = text.find(label);
  REQUIRE(at != std::string::npos);
  return std::stod(text.substr(at + label.size()));
}

TEST_CASE("a ResNet of libtorch learns with two workers as in libtorch's own loop, and is saved") {
  const Sandbox program(MUSTER_TORCH_RESNET);
  const auto run = program.succeeds("--examples 640 --epochs 3 --width 8");
  CHECK(run.out.starts_with("plan: 2 workers on cpu"));
  CHECK(after(run.out, "2 workers: accuracy on other digits ") > 0.4);  // guessing is 0.1
  CHECK(after(run.out, "alone, 2 threads: ") > 0.4);
  CHECK_CONTAINS(run.out, "times as many by workers");
  CHECK(std::filesystem::file_size(program.directory / "torch-resnet.pt") > 100'000);
}

}  // namespace
}  // namespace muster
