// A libtorch module as the program trains it.
#include "tests/examples/sandbox.h"

namespace muster {

TEST_CASE("a ResNet of libtorch learns with two workers as in libtorch's own loop, and is saved") {
  const test::Sandbox program(MUSTER_TORCH_RESNET);
  const auto out = program.succeeds("--examples 640 --epochs 3 --width 8").out;
  CHECK(out.starts_with("plan: 2 workers on cpu"));
  CHECK(test::numberAfter(out, "2 workers: accuracy on other digits ") > 0.4);  // guessing is 0.1
  CHECK(test::numberAfter(out, "alone, 2 threads: ") > 0.4);
  CHECK_CONTAINS(out, "times as many by workers");
  CHECK(std::filesystem::file_size(program.directory / "torch-resnet.pt") > 100'000);
}

}  // namespace muster
