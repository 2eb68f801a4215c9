#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "tests/examples/sandbox.h"

// A libtorch module as the program trains it.

namespace muster {
namespace {

using test::contains;
using test::Sandbox;

double after(const std::string& text, const std::string& label) {
  const auto at = text.find(label);
  REQUIRE(at != std::string::npos);
  return std::stod(text.substr(at + label.size()));
}

TEST_CASE("a ResNet of libtorch learns with two workers as in libtorch's own loop, and is saved") {
  const Sandbox program(MUSTER_TORCH_RESNET);
  const auto run = program.run({"--examples", "640", "--epochs", "3", "--width", "8"});
  CAPTURE(run.out);
  CAPTURE(run.err);
  REQUIRE(run.exit == 0);
  CHECK(run.out.starts_with("plan: 2 workers on cpu"));
  CHECK(after(run.out, "with 2 workers: ") > 0.4);  // guessing is 0.1
  CHECK(after(run.out, "alone, 2 threads: ") > 0.4);
  CHECK(contains(run.out, "as many images a second as libtorch alone"));
  CHECK(std::filesystem::file_size(program.directory / "torch-resnet.pt") > 100'000);
}

TEST_CASE("an interrupted training saves its module") {
  const Sandbox program(MUSTER_TORCH_RESNET);
  test::Program running(MUSTER_TORCH_RESNET,
                        program.launch({"--examples", "64", "--epochs", "1000000", "--width", "2"}));
  REQUIRE(running.awaitText("\nepoch 1/1000000: "));
  running.signal(SIGTERM);
  const auto run = running.wait();
  CAPTURE(run.err);
  CHECK(run.exit == 130);
  CHECK(contains(run.out, "\nsaved: torch-resnet.pt\ninterrupted"));
  CHECK(std::filesystem::file_size(program.directory / "torch-resnet.pt") > 10'000);
}

TEST_CASE("a module that cannot be written does not replace one that was saved") {
  const Sandbox program(MUSTER_TORCH_RESNET);
  test::writeFile(program.directory / "torch-resnet.pt", "a good one");
  auto launch = program.launch({"--examples", "64", "--epochs", "1", "--width", "8"});
  launch.fileSizeLimit = 64 << 10;
  const auto run = test::runProgram(MUSTER_TORCH_RESNET, launch);
  CHECK(run.exit == 1);
  CHECK(contains(run.err, "torch-resnet.pt: could not be written: File too large"));
  CHECK(test::readFile(program.directory / "torch-resnet.pt") == "a good one");
  CHECK(program.directory.names().size() == 1);
}

}  // namespace
}  // namespace muster
