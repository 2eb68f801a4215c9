// muster example: a run file to begin with.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "examples/muster/commands.h"
#include "examples/muster/options.h"
#include "examples/muster/standard_streams.h"
#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/io/input_file.h"
#include "muster/core/nn/models/convnet.h"
#include "muster/parallel/run/detail/run_network.h"
#include "muster/parallel/run/named_networks.h"
#include "muster/parallel/run/prepared_run.h"
#include "muster/parallel/run/suggested_run.h"
#include "shipped_runs.h"

namespace program {
namespace {

using namespace muster;

/// A run on generated digits.
RunFile drawnDigits() {
  auto network = convnet();
  network.seed = 123;
  return {.data = {.type = "generated", .trainExamples = 6000, .testExamples = 1000},
          .network = network.toJson(),
          .training = {.workers = 2, .strategyOptions = "every=3", .epochs = 3},
          .listeners = {.testEvery = 1}};
}

/// The options of this command for fields that the library's messages advise.
constexpr std::pair<std::string_view, std::string_view> kOptions[] = {
    {"data.label=", "--label "},
    {"data.regression=true", "--regression"},
    {"data.header=false", "--no-header"},
    {"data.header=true reads it", "without --no-header it is read"}};

std::string inOptions(std::string text) {
  return withOptions(std::move(text), kOptions);
}

/// @throws InvalidArgument for what this command writes, or training does, in place of data.
void requireData(const std::filesystem::path& file) {
  const auto ending = file.extension();
  const bool run = ending == ".json";
  require(!run && ending != ".safetensors",
          "{} is named like a {}, and muster example needs a table or a directory of images, for which it "
          "prints a run file: muster example TABLE.csv > {}.json",
          file.string(), run ? "run file" : "model", file.stem() == "run" ? "new" : "run");
}

/// The files that the program ships, by name.
constexpr std::pair<std::string_view, std::string_view> kShipped[] = {{"mnist", kMnistRun}};

}  // namespace

int example(const Call& call) {
  DataSource data{.type = "csv"};
  CommandLine line(
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
  data.train = call.file;
  for (const auto& [name, text] : kShipped)
    if (call.file == name) {
      line.refuse({"label", "separator", "no-header", "regression", "grey", "network"}, "is for other data");
      printResult(text);
      return 0;
    }
  requireData(call.file);
  const bool pictures = !call.file.empty() && fileTypeOf(call.file) == std::filesystem::file_type::directory;
  if (call.file.empty() || pictures)
    line.refuse({"label", "separator", "no-header", "regression"}, "is for a table");
  if (!pictures) line.refuse({"grey"}, "is for a directory of images");
  if (data.separator == "\\t" || data.separator == "tab") data.separator.assign(1, '\t');
  require(data.separator.size() == 1, "--separator must be one character, or tab, got \"{}\"",
          data.separator);
  data.header = !noHeader;
  if (!call.file.empty() && !pictures && !line.said("separator")) data.separator = separatorIn(call.file);
  if (pictures) data.type = "images";
  setLogSink(
      [](LogLevel level, std::string_view text) { printLogLine(level, inOptions(std::string(text))); });
  printResult(sayErrors(inOptions, [&] {
    RunFile run = call.file.empty() ? drawnDigits() : suggestedRun(std::move(data));
    if (network.empty()) return run.toJson();
    run = RunFile::parse(run.toJson(), std::array{fmt::format("network=\"{}\"", network)});
    detail::networkForData(run);  // refuses one that does not fit
    return run.toJson();
  }));
  return 0;
}

}  // namespace program
