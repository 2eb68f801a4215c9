#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "muster/core/io/safetensors.h"
#include "tests/examples/sandbox.h"

// The programs with a user-defined layer, model and strategy.

namespace muster {
namespace {

using test::contains;
using test::Sandbox;

/// The lines without text in brackets: whether workers are pinned depends on other programs.
std::string withoutPinning(std::string text) {
  for (auto open = text.find('('); open != std::string::npos; open = text.find('(', open))
    text.erase(open, text.find(')', open) - open + 1);
  return text;
}

/// The last accuracy that was printed.
double accuracyOf(const std::string& text) {
  const std::string label = "accuracy on other digits ";
  const auto at = text.rfind(label);
  REQUIRE(at != std::string::npos);
  return std::stod(text.substr(at + label.size()));
}

const std::vector<std::string> kNames{"own_layer", "own_model"};
const std::vector<std::string> kExecutables{MUSTER_OWN_LAYER, MUSTER_OWN_MODEL};
const std::vector<std::string> kFiles{"own-layer.safetensors", "own-model.safetensors"};

TEST_CASE("a user-defined layer is checked, learns, is saved and loaded") {
  const Sandbox program(MUSTER_OWN_LAYER);
  const auto run = program.run({});
  CAPTURE(run.err);
  CHECK(run.exit == 0);
  CHECK(run.out.starts_with("gradient check: 77 elements, all as central differences have them; "));
  CHECK(contains(run.out, "\ntanhskip2 "));
  CHECK(accuracyOf(run.out) > 0.8);
  CHECK(
      run.out.ends_with("saved and loaded: own-layer.safetensors; its outputs are the same, bit for bit\n"));
  const auto file = readSafetensors(program.directory / kFiles[0]);
  REQUIRE(file.find("tanhskip1.alpha") != nullptr);
  CHECK(file.find("tanhskip1.alpha")->data<float>()[0] != 0.5f);  // the layer was trained
  CHECK(file.find("tanhskip2.weight")->shape() == Shape{64, 64});
}

TEST_CASE("a user-defined model learns with several workers, is saved and loaded") {
  const Sandbox program(MUSTER_OWN_MODEL);
  const auto run = program.run({"--workers", "3", "--model", "here.safetensors"});
  CAPTURE(run.err);
  CHECK(run.exit == 0);
  CHECK(run.out.starts_with("plan: 3 workers on cpu"));
  CHECK(accuracyOf(run.out) > 0.8);
  CHECK(run.out.ends_with("saved and loaded: here.safetensors; its outputs are the same, bit for bit\n"));
  CHECK(readSafetensors(program.directory / "here.safetensors").tensors.size() == 8);
}

TEST_CASE("a user-defined strategy trains beside averaging, and continues from its file") {
  const Sandbox program(MUSTER_OWN_STRATEGY);
  const auto run = program.run({"--epochs", "2"});
  CAPTURE(run.err);
  CHECK(run.exit == 0);
  CHECK(contains(run.out, ", averaging every 3 iterations: 6 batches a round\n"));
  CHECK(contains(run.out, ", annealed averaging every 3 iterations: 6 batches a round\n"));
  CHECK(accuracyOf(run.out) > 0.7);
  CHECK(contains(run.out, "saved as own-strategy.safetensors, loaded, and one epoch more: accuracy 0."));
  const auto file = readSafetensors(program.directory / "own-strategy.safetensors");
  CHECK(file.find("updater.strategy.moving average") != nullptr);
  CHECK(withoutPinning(program.run({"--epochs", "2"}).out) == withoutPinning(run.out));
}

TEST_CASE("the same command gives the same bits, and another seed gives others") {
  for (std::size_t i = 0; i < 2; ++i) {
    CAPTURE(kNames[i]);
    const Sandbox program(kExecutables[i]);
    const auto trained = [&](const std::string& seed) {
      CHECK(program.run({"--epochs", "1", "--examples", "300", "--seed", seed}).exit == 0);
      return test::readFile(program.directory / kFiles[i]);
    };
    const auto first = trained("1");
    CHECK(first == trained("1"));
    CHECK(first != trained("2"));
  }
}

/// Begins a training that has no end by itself, and waits for its first epoch.
test::Program begun(const std::string& executable, const Sandbox& program) {
  auto launch = program.launch({"--epochs", "1000000", "--examples", "96", "--model", "d/m"});
  launch.environment["TMPDIR"] = (program.directory / "other").string();
  std::filesystem::create_directories(program.directory / "d");
  std::filesystem::create_directories(program.directory / "other");
  return test::Program(executable, launch);
}

TEST_CASE("a training that a signal ends is saved") {
  for (const char* executable : {MUSTER_OWN_LAYER, MUSTER_OWN_MODEL, MUSTER_OWN_STRATEGY})
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      CAPTURE(executable);
      CAPTURE(signal);
      const Sandbox program(executable);
      auto running = begun(executable, program);
      REQUIRE(running.awaitText("epoch 1/1000000: "));
      running.signal(signal);
      const auto run = running.wait();
      CAPTURE(run.err);
      CHECK(run.exit == 130);
      CHECK(contains(run.out, "\ninterrupted, with "));
      CHECK(run.out.ends_with(" of 1000000 epochs finished\nsaved: d/m\n"));
      CHECK_FALSE(readSafetensors(program.directory / "d" / "m").tensors.empty());
    }
}

TEST_CASE("a training whose directory has vanished is saved in another one") {
  for (const char* executable : {MUSTER_OWN_LAYER, MUSTER_OWN_MODEL, MUSTER_OWN_STRATEGY}) {
    CAPTURE(executable);
    const Sandbox program(executable);
    auto running = begun(executable, program);
    REQUIRE(running.awaitText("epoch 1/1000000: "));
    std::filesystem::remove_all(program.directory / "d");
    running.signal(SIGINT);
    const auto run = running.wait();
    CAPTURE(run.err);
    CHECK(run.exit == 1);
    const auto other = program.directory / "other";
    REQUIRE(contains(run.err, "; saved as " + other.string() + "/m-"));
    for (const auto& file : std::filesystem::directory_iterator(other))
      CHECK_FALSE(readSafetensors(file.path()).tensors.empty());
  }
}

TEST_CASE("help explains every option, and invalid options are refused") {
  for (std::size_t i = 0; i < 2; ++i) {
    const Sandbox program(kExecutables[i]);
    const auto help = program.run({"--help"});
    CHECK(help.exit == 0);
    for (const char* option : {"workers", "epochs", "examples", "seed", "model", "help"})
      CHECK_MESSAGE(contains(help.out, "\n  --" + std::string(option) + " "), option);
    const std::vector<std::pair<std::vector<std::string>, std::string>> refused{
        {{"--workers", "0"}, "--workers must be between 1 and 1024, got 0"},
        {{"--epochs", "0"}, "--epochs must be between 1 and 1000000, got 0"},
        {{"--examples", "0"}, "--examples must be between 1 and 60000, got 0"},
        {{"--seed", "-1"}, "--seed must be at least 0, got -1"},
        {{"--model", ""}, "--model needs the name of a file or directory"}};
    for (const auto& [arguments, sentence] : refused) {
      const auto run = program.run(arguments);
      CHECK(run.exit == 2);
      CHECK(run.err == kNames[i] + ": " + sentence + "\n");
    }
    const auto nowhere = program.run({"--model", "missing/model.safetensors"});
    CHECK(nowhere.exit == 1);
    CHECK(contains(nowhere.err, "missing/model.safetensors: cannot be written"));
  }
}

}  // namespace
}  // namespace muster
