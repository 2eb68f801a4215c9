#include "examples/muster/commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "examples/muster/gallery.h"
#include "examples/muster/options.h"
#include "examples/muster/picture_run.h"
#include "examples/muster/run_file.h"
#include "examples/muster/table_run.h"
#include "examples/support/standard_streams.h"
#include "muster/core/base/error.h"
#include "muster/core/io/input_file.h"
#include "muster/core/nn/models/convnet.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/datasets/table.h"
#include "shipped_runs.h"

namespace program {
namespace {

/// A run on generated digits.
RunFile drawnDigits() {
  auto network = muster::convnet();
  network.seed = 123;
  return {.data = {.type = "generated", .trainExamples = 6000, .testExamples = 1000},
          .network = network.toJson(),
          .training = {.workers = 2, .strategyOptions = "every=3", .epochs = 3},
          .listeners = {.testEvery = 1}};
}

/// The files that the program ships, by name.
constexpr std::pair<std::string_view, std::string_view> kShipped[] = {{"mnist", kMnistRun}};

int example(const Call& call) {
  RunData data{.type = "csv", .train = call.file};
  example::CommandLine line(
      "Prints a run file to begin with: a convolutional network on generated digits, with two workers that\n"
      "are averaged every 3 iterations, or a small network with one worker for data of your own.\n\n"
      "  muster example > run.json\n"
      "  muster example --network resnet18           another network, by its name\n"
      "  muster example mnist > run.json             what ./run mnist trains\n"
      "  muster example rows.csv > run.json          the label is the last column\n"
      "  muster example images --grey > run.json     a directory with one of PNG or JPEG files for each "
      "class\n");
  line.group("Options, for data of your own");
  bool noHeader = false;
  line.add("label", data.label, "NAME", "the label's column, or its number from 1 (default: the last one)");
  line.add("separator", data.separator, "C", "the character between the columns");
  line.flag("no-header", noHeader, "the first row has no names");
  line.flag("regression", data.regression, "the labels are numbers to predict, not classes");
  line.flag("grey", data.grey, "the images have one channel");
  std::string network;
  line.group("Options, for any data");
  line.add("network", network, "NAME",
           fmt::format("a network of the library: {}", fmt::join(networkNames(), ", ")));
  if (!readOptions(line, call)) return 0;
  for (const auto& [name, text] : kShipped)
    if (call.file == name) {
      line.refuse({"label", "separator", "no-header", "regression", "grey", "network"}, "is for other data");
      example::printResult(text);
      return 0;
    }
  const bool pictures =
      !call.file.empty() && muster::fileTypeOf(call.file) == std::filesystem::file_type::directory;
  if (call.file.empty() || pictures)
    line.refuse({"label", "separator", "no-header", "regression"}, "is for a table");
  if (!pictures) line.refuse({"grey"}, "is for a directory of images");
  muster::require(data.separator.size() == 1, "--separator must be one character, got \"{}\"",
                  data.separator);
  data.header = !noHeader;
  if (!call.file.empty() && !pictures && !line.said("separator"))
    data.separator = muster::separatorIn(call.file);
  if (pictures) data.type = "images";
  RunFile run = call.file.empty() ? drawnDigits()
                : pictures        ? pictureRun(std::move(data))
                                  : tableRun(std::move(data));
  if (!network.empty())
    run = RunFile::parse(run.toJson(), std::array{fmt::format("network=\"{}\"", network)});
  example::printResult(run.toJson());
  return 0;
}

}  // namespace

const std::vector<Command>& commands() {
  static const std::vector<Command> all{
      {"train", "run.json", "trains, tests and saves the network of a run file", train},
      {"plan", "run.json", "says what train would do, with the memory of each device; trains nothing", plan},
      {"evaluate", "run.json", "tests a trained network: accuracy, F1, the confusion matrix", evaluate},
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
