#include "tests/fuzz/programs.h"

#include "examples/muster/compare/arms.h"
#include "examples/muster/run_options.h"
#include "examples/options.h"
#include "muster/core/nn/layers.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/parallel/run/run_file.h"
#include "tests/fuzz/target.h"

namespace muster::fuzz {
namespace {

/// The options of the small examples, of each type.
void readExample(int argc, const char* const* argv) {
  int workers = 2;
  std::int64_t epochs = 3;
  double rate = 0.1;
  std::string text = "a";
  bool flag = false;
  if (example::readOptions({argv + 1, argv + argc}, "An example.",
                           {{"workers", &workers, "threads"},
                            {"epochs", &epochs, "passes"},
                            {"lr", &rate, "learning rate"},
                            {"text", &text, "file"},
                            {"imagenet", &flag, "colours"}}))
    expect(workers >= 1 && epochs >= 1 && rate >= 0 && std::isfinite(rate) && !text.empty(),
           "an example: out of range");
}

/// A run file with these values of `--set`.
void readSets(std::span<const std::string> sets) {
  static const std::string text = runFileText();
  const auto run = muster::RunFile::parse(text, sets);
  const auto written = run.toJson();
  expect(muster::RunFile::parse(written).toJson() == written,
         "a run that was read and written is another one");
  run.makeStrategy(1);
}

/// Arms of a comparison of that run file.
void readArms(std::span<const char* const> texts) {
  const comparing::BaseRun base("run.json", runFileText(), {});
  for (const auto* const text : texts)
    for (const auto& arm : comparing::parseArms(text, base)) {
      expect(!arm.name.empty(), "an arm has no name");
      base.differences(base.run(arm.settings), 0);
    }
}

/// A run file with these options of `muster train`.
void readTraining(int argc, const char* const* argv) {
  program::FieldChoices choices;
  program::CommandLine line("Trains.");
  describeFields(line, choices);
  if (line.read(argc, argv)) readSets(choices.all());
}

}  // namespace

std::string runFileText() {
  muster::RunFile run;
  run.data.type = "generated";
  run.network =
      MultiLayerConfiguration{.inputShape = {1, 28, 28}, .layers = {Output{.classes = 10}}}.toJson();
  return run.toJson();
}

void readLine(char program, int argc, const char* const* argv) {
  switch (program) {
    case 'e':
      return readExample(argc, argv);
    case 'a':
      return readArms({argv + 1, argv + argc});
    case 'u':
      return readSets(std::vector<std::string>(argv + 1, argv + argc));
    default:
      readTraining(argc, argv);
  }
}

}  // namespace muster::fuzz
