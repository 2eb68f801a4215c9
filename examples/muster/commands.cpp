#include "examples/muster/commands.h"

namespace program {

const std::vector<Command>& commands() {
  static const std::vector<Command> all{
      {"train", "run.json", "trains, tests and saves the network of a run file", train},
      {"plan", "run.json", "says what train would do, with the memory of each device; trains nothing", plan},
      {"evaluate", "run.json [model]", "tests a trained network: accuracy, F1, the confusion matrix",
       evaluate},
      {"predict", "model new.csv", "writes a trained network's predictions as CSV", predict},
      {"summary", "run.json | model", "layers, shapes and parameters of a run file or a model file", summary},
      {"convert", "model", "a model to ONNX, weights to and from PyTorch, a checkpoint to a model", convert},
      {"compare", "run.json",
       "trains a run file in several ways with several seeds, and tests how they differ", compare},
      {"page", "DIR", "shows the runs of a directory side by side, in a browser or as one HTML file", page},
      {"strategies", "", "lists the averaging rules with their options and defaults", strategies},
      {"example", "[data]", "prints a run file to begin with, also for data of your own", example},
      {"schema", "", "prints the JSON Schema of run files, for editors", schema},
  };
  return all;
}

}  // namespace program
