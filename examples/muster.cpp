// The installed program: trains, tests and describes networks from run files. `muster --help` lists its
// commands, `muster train --help` the options of one.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "examples/muster/commands.h"
#include "examples/muster/program.h"
#include "examples/muster/standard_streams.h"
#include "muster/core/base/error.h"
#include "muster/core/base/nearest_word.h"
#include "muster/core/device/choose_device.h"
#include "muster_about.h"

namespace {

using program::Command;
using program::commands;

std::string helpText() {
  std::string text =
      "Usage: muster COMMAND [FILE] [options]\n\n"
      "Trains one neural network with several workers at once, averaging their parameters.\n\n";
  for (const auto& command : commands())
    text += fmt::format("  {:<26}  {}\n", fmt::format("{} {}", command.name, command.file), command.does);
  return text +
         "\nmuster COMMAND --help explains a command; muster --version says what this program is built "
         "with.\n"
         "A run file describes a whole training: data, network, workers, averaging rule and listeners.\n"
         "Begin with the file that muster example prints:\n\n"
         "  muster example > run.json && muster plan run.json && muster train run.json\n"
         "  muster example rows.csv > run.json     for a table of your own, or a folder of pictures\n";
}

void printVersion() {
  const auto why = muster::whyNoCuda();
  program::printResult(
      fmt::format("muster {}\n\n{}GPUs: {}\n", kVersion, kAbout, why.empty() ? "yes" : "no, as " + why));
}

/// Programs of earlier versions, and the commands that replace them.
constexpr std::pair<std::string_view, std::string_view> kFormer[] = {
    {"compare_convergence", "muster compare, with a run file and --arm for each way to train"},
    {"mnist", "muster train, with a run file as muster example mnist prints it"},
    {"mnist_convnet", "muster train, with a run file as muster example mnist prints it"}};

const Command& commandNamed(const std::string& name) {
  const auto found = std::ranges::find(commands(), name, &Command::name);
  if (found != commands().end()) return *found;
  std::vector<std::string> names;
  if (name.starts_with("-"))
    names = {"--help", "--version"};
  else
    for (const auto& command : commands()) names.emplace_back(command.name);
  for (const auto& [former, now] : kFormer)
    muster::require(name != former, "there is no command \"{}\": it is {}", name, now);
  muster::require(!name.ends_with(".json"), "there is no command \"{}\"; to train it: muster train {}", name,
                  name);
  throw muster::InvalidArgument(
      fmt::format("there is no command \"{}\"{}; --help lists all", name, muster::nearestHint(name, names)));
}

int run(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "--help";
  if (first == "help" && argc > 2) {
    const Command& command = commandNamed(argv[2]);
    return command.run({.program = fmt::format("muster {}", command.name), .options = {"--help"}});
  }
  if (first == "--help" || first == "-h" || first == "help") {
    program::printResult(helpText());
    return argc > 1 ? 0 : 2;
  }
  if (first == "--version") {
    printVersion();
    return 0;
  }
  const Command& command = commandNamed(first);
  return command.run({.program = "muster " + first, .options = {argv + 2, argv + argc}});
}

}  // namespace

int main(int argc, char** argv) {
  return program::runProgram("muster", [&] { return run(argc, argv); });
}
