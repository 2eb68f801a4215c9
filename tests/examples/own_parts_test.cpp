#include <doctest/doctest.h>

#include <utility>

#include "muster/core/io/safetensors.h"
#include "tests/examples/sandbox.h"

// The programs with a user-defined layer, model and strategy.

namespace muster {
namespace {

using test::Sandbox;

/// The last accuracy that was printed.
double accuracyOf(const std::string& text) {
  const std::string label = "accuracy on other digits ";
  const auto at = text.rfind(label);
  REQUIRE(at != std::string::npos);
  return std::stod(text.substr(at + label.size()));
}

TEST_CASE("a user-defined layer is checked, learns, is saved and loaded") {
  const Sandbox program(MUSTER_OWN_LAYER);
  const auto run = program.succeeds("");
  CHECK(run.out.starts_with("gradient check: 77 elements; "));
  CHECK(accuracyOf(run.out) > 0.8);
  CHECK(run.out.ends_with("saved: own-layer.safetensors; loaded, it predicts the same, bit for bit\n"));
  const auto file = readSafetensors(program.directory / "own-layer.safetensors");
  REQUIRE(file.find("tanhskip1.alpha") != nullptr);
  CHECK(file.find("tanhskip1.alpha")->data<float>()[0] != 0.5f);  // the layer was trained
  CHECK(file.find("tanhskip2.weight")->shape() == Shape{64, 64});
}

TEST_CASE("a user-defined model learns with several workers, is saved and loaded") {
  const Sandbox program(MUSTER_OWN_MODEL);
  const auto run = program.succeeds("--workers 3 --epochs 6");
  CHECK(run.out.starts_with("plan: 3 workers on cpu"));
  CHECK(accuracyOf(run.out) > 0.8);
  CHECK(run.out.ends_with("saved: own-model.safetensors; loaded, it predicts the same, bit for bit\n"));
  const auto file = readSafetensors(program.directory / "own-model.safetensors");
  CHECK(file.tensors.size() == 4);
  CHECK(file.find("digit.weight")->shape() == Shape{10, 64});
}

TEST_CASE("a user-defined strategy trains beside averaging, and continues from its file") {
  const Sandbox program(MUSTER_OWN_STRATEGY);
  const auto run = program.succeeds("--epochs 2");
  CHECK_CONTAINS(run.out, ", averaging every 3 iterations: 6 batches a round");
  CHECK_CONTAINS(run.out, ", annealed averaging every 3 iterations: 6 batches a round");
  CHECK_CONTAINS(run.out, "\nsaved: own-strategy.safetensors; one epoch more from there\n");
  CHECK(accuracyOf(run.out) > 0.7);
  const auto file = readSafetensors(program.directory / "own-strategy.safetensors");
  CHECK(file.find("updater.strategy.moving average") != nullptr);
}

TEST_CASE("the same command gives the same bits") {
  for (const auto& [executable, file] : {std::pair(MUSTER_OWN_LAYER, "own-layer.safetensors"),
                                         {MUSTER_OWN_MODEL, "own-model.safetensors"},
                                         {MUSTER_OWN_STRATEGY, "own-strategy.safetensors"}}) {
    CAPTURE(executable);
    const Sandbox program(executable);
    const auto trained = [&, name = file](const char* workers) {
      program.succeeds(std::string("--epochs 1 --examples 300 --workers ") + workers);
      return program.read(name);
    };
    const auto first = trained("2");
    CHECK(first == trained("2"));
    CHECK(first != trained("3"));
  }
}

}  // namespace
}  // namespace muster
