#include "tests/fuzz/programs.h"

#include "examples/muster/compare/arms.h"
#include "examples/muster/run_options.h"
#include "examples/options.h"
#include "muster/core/nn/layers.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/parallel/run/run_file.h"

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

Bytes line(char program, const std::vector<std::string>& arguments) {
  Bytes bytes{static_cast<std::uint8_t>(program)};
  for (const auto& argument : arguments) {
    if (bytes.size() > 1) bytes.push_back(0);
    bytes.insert(bytes.end(), argument.begin(), argument.end());
  }
  return bytes;
}

std::vector<std::string> argumentsIn(ByteSpan bytes) {
  return split(textOf(bytes.subspan(1)), '\0');
}

const std::vector<Bytes>& validLines() {
  static const std::vector<Bytes> all{
      line('e', {}),
      line('m', {}),
      line('u', {}),
      line('e', {"--text", "book.txt", "--epochs=4", "--lr", "1e-3", "--imagenet"}),
      line('m',
           {"--workers", "4", "--strategy", "synchronous", "--batch", "32", "--page", "--device", "cpu"}),
      line('m',
           {"--strategy", "diloco", "--strategy-options", "rate=0.7,every=100", "--data", "generated",
            "--updater", "adam", "--lr", "1e-3", "--checkpoint-dir", "c", "--checkpoint-minutes", "0.5"}),
      line('a', {"averaging every={1,5} workers={2,4}", "joined", "slow: diloco rate=0.5 learningRate=0.1"}),
      line('a', {"adam: network.updater={\"type\": \"adam\"} batch=8", "network.layers[0].classes={3,4}"}),
      line('u', {"training.workers=4", "network.layers[0].classes=3", "data.batch=8"}),
      line('u', {"training.strategy=diloco", "training.strategy.rate=0.7", "network.updater.learningRate=0.5",
                 "listeners.checkpoints={\"directory\":\"c\"}"})};
  return all;
}

}  // namespace muster::fuzz
