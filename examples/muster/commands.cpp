#include "examples/muster/commands.h"

#include <fmt/format.h>

#include "examples/compare_convergence/compare.h"
#include "examples/muster/options.h"
#include "examples/muster/run_file.h"
#include "muster/core/nn/models/convnet.h"

namespace program {
namespace {

/// The comparison of averaging rules, which has options in place of a run file.
int compare(const Call& call) {
  std::vector<const char*> arguments{call.program.c_str()};
  for (const auto& option : call.options) arguments.push_back(option.c_str());
  return convergence::compare(static_cast<int>(arguments.size()), arguments.data());
}

int example(const Call& call) {
  example::CommandLine line(
      "Prints a run file to begin with: a convolutional network on digits that the program draws, with two\n"
      "workers that are averaged every 3 iterations.\n");
  line.group("Options");
  if (!readOptions(line, call)) return 0;
  auto network = muster::convnet();
  network.seed = 123;
  RunFile run{.data = {.type = "generated", .trainExamples = 6000, .testExamples = 1000},
              .network = network.toJson(),
              .training = {.workers = 2, .strategyOptions = "every=3", .epochs = 3},
              .listeners = {.testEvery = 1}};
  fmt::print("{}", run.toJson());
  return 0;
}

}  // namespace

const std::vector<Command>& commands() {
  static const std::vector<Command> all{
      {"train", "run.json", "trains, tests and saves the network of a run file", train},
      {"plan", "run.json", "says what train would do, with the memory of each device; trains nothing", plan},
      {"evaluate", "run.json", "tests a trained network: accuracy, F1, the confusion matrix", evaluate},
      {"predict", "run.json", "writes a trained network's predictions as CSV", predict},
      {"summary", "run.json | model", "layers, shapes and parameters of a run file or a model file", summary},
      {"convert", "model", "a model to ONNX, weights to and from PyTorch, a checkpoint to a model", convert},
      {"compare", "", "compares averaging rules over a grid of trainings with several seeds", compare},
      {"page", "DIR", "shows the runs of a directory side by side, in a browser or as one HTML file", page},
      {"strategies", "", "lists the averaging rules with their options and defaults", strategies},
      {"example", "", "prints a run file to begin with", example},
      {"schema", "", "prints the JSON Schema of run files, for editors", schema},
  };
  return all;
}

}  // namespace program
