// Command lines of the programs: the first byte selects the program, the others are its arguments, separated
// by zeros. Those of muster are values of --set.
#include <algorithm>
#include <array>

#include "examples/char_lstm/options.h"
#include "examples/compare_convergence/options.h"
#include "examples/fine_tune/options.h"
#include "examples/lenet_from_scratch/options.h"
#include "examples/mnist_convnet/options.h"
#include "examples/muster/run_file.h"
#include "examples/resnet18_fashion/options.h"
#include "muster/core/nn/layers.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/fuzz/input_file.h"

namespace muster::fuzz {
namespace {

constexpr std::string_view kPrograms = "cmgflru";  // the first letters, and u: muster

std::vector<std::string> argumentsIn(std::string_view text) {
  std::vector<std::string> arguments{"program"};
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\0'), text.size());
    arguments.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return arguments;
}

void expectSound(const example::WorkerOptions& o) {
  expect(o.workers >= 1 && o.workers <= 1024 && o.threadsPerWorker >= 1 && o.averagingFrequency >= 1,
         "numbers of workers out of range");
}

/// A run file with these values of `--set`.
void readSets(std::span<const std::string> sets) {
  static const std::string text = [] {
    program::RunFile run;
    run.data.type = "generated";
    run.network =
        MultiLayerConfiguration{.inputShape = {1, 28, 28}, .layers = {Output{.classes = 10}}}.toJson();
    return run.toJson();
  }();
  const auto run = program::RunFile::parse(text, sets);
  const auto written = run.toJson();
  expect(program::RunFile::parse(written).toJson() == written,
         "a run that was read and written is another one");
  run.makeStrategy(1);
}

void readLine(char program, int argc, const char* const* argv) {
  switch (program) {
    case 'c':
      if (const auto o = example::readCharLstmArguments(argc, argv)) {
        expectSound(*o);
        expect(o->batch >= 1 && o->learningRate > 0 && std::isfinite(o->clipNorm), "char_lstm: out of range");
      }
      return;
    case 'g':
      if (const auto o = convergence::readOptions(argc, argv))
        expect(o->epochs >= 1 && o->target > 0 && o->target < 1 && !o->out.empty(), "compare: out of range");
      return;
    case 'f':
      if (const auto o = example::readFineTuneOptions(argc, argv))
        expect(o->workers >= 1 && o->epochs >= 1 && o->trainedBatch >= 0 && o->learningRate > 0 &&
                   o->backboneRate >= 0 && std::isfinite(o->learningRate + o->backboneRate),
               "fine_tune: out of range");
      return;
    case 'l':
      if (const auto o = example::readLenetOptions(argc, argv))
        expect(o->replicas().size() == static_cast<std::size_t>(o->devices) && o->devices >= 1 &&
                   o->batch >= 1 && o->epochs >= 1 && o->learningRate > 0,
               "lenet_from_scratch: out of range");
      return;
    case 'r':
      if (const auto o = example::readResnet18Options(argc, argv)) {
        expectSound(*o);
        expect(o->batch >= 1 && o->epochs >= 0 && o->learningRate > 0 && o->width >= 1 && o->seed >= 0,
               "resnet18_fashion: out of range");
      }
      return;
    case 'u':
      return readSets(std::vector<std::string>(argv + 1, argv + argc));
    default:
      if (const auto o = example::readOptions(argc, argv)) {
        expectSound(*o);
        expect(o->batch >= 1 && o->epochs >= 1 && o->l2 >= 0 && o->seed >= 0, "mnist_convnet: out of range");
        o->makeUpdater();
      }
  }
}

void run(ByteSpan bytes) {
  if (bytes.empty()) return;
  const auto arguments = argumentsIn(textOf(bytes.subspan(1)));
  std::vector<const char*> argv;
  for (const auto& argument : arguments) argv.push_back(argument.c_str());
  try {
    readLine(static_cast<char>(bytes[0]), static_cast<int>(argv.size()), argv.data());
  } catch (const InvalidArgument&) {
  } catch (const DeviceUnavailable&) {
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

std::vector<Bytes> seeds() {
  return {
      line('c', {"--text", "book.txt", "--units", "64", "--lr=0.01", "--clip-norm", "0"}),
      line('c', {"--load", "m", "--prompt", "The \xC3\xA9", "--length", "5", "--temperature", "1e-3"}),
      line('m', {"--workers", "4", "--mode", "synchronous", "--batch", "32", "--quiet", "--device", "cpu"}),
      line('m',
           {"--strategy", "diloco", "--strategy-options", "rate=0.7,every=100", "--data", "generated",
            "--updater", "adam", "--lr", "1e-3", "--checkpoint-dir", "c", "--checkpoint-minutes", "0.5"}),
      line('g', {"--mode", "averaging,synchronous", "--frequency", "1,5,25", "--workers", "2,4", "--seeds",
                 "1,2", "--updater", "nesterovs:0.02,adam", "--link", "10Gbit,50us", "--target", "97.5"}),
      line('g', {"--grid", "rules", "--data", "mixtures", "--model", "mlp", "--out", "d"}),
      line('f', {"--weights", "w", "--imagenet", "--data", "cifar10", "--backbone-rate", "0.1",
                 "--trained-batch", "256", "--learning-rate", "0.02"}),
      line('f', {"--examples", "100", "--backbone", "b", "--model", "m", "--json", "j"}),
      line('l', {"--devices", "2", "--device", "cpu", "--data", "fashion", "--batch", "14", "--lr", "0.2"}),
      line('r', {"--workers", "2", "--batch", "16", "--init", "normal0.01", "--augment", "true", "--report",
                 "r", "--data", "cifar10", "--width", "4"}),
      line('r', {"--load", "m", "--epochs", "0", "--save", "m", "--page", "--page-port", "0", "--curves",
                 "a.curves.jsonl", "--group", "g"}),
      line('u', {"training.workers=4", "network.layers[0].classes=3", "data.batch=8"}),
      line('u', {"training.strategy=diloco", "training.strategy.rate=0.7", "network.updater.learningRate=0.5",
                 "listeners.checkpoints={\"directory\":\"c\"}"})};
}

/// Arguments left out, repeated, exchanged, and values at the edges.
void mutate(Bytes& bytes, Draw& draw) {
  static constexpr auto kValues = std::to_array<std::string_view>({"0",
                                                                   "-1",
                                                                   "1",
                                                                   "1.5",
                                                                   "2147483648",
                                                                   "9223372036854775807",
                                                                   "9223372036854775808",
                                                                   "nan",
                                                                   "inf",
                                                                   "-inf",
                                                                   "1e999",
                                                                   "1e-320",
                                                                   "",
                                                                   ",",
                                                                   "a,,b",
                                                                   "true",
                                                                   "no",
                                                                   "help",
                                                                   "--",
                                                                   "-x",
                                                                   "=",
                                                                   "0x10",
                                                                   " 7",
                                                                   "7 ",
                                                                   "1,1",
                                                                   "\xFF",
                                                                   "cuda:99999999999",
                                                                   "adam:",
                                                                   "adam:nan",
                                                                   "every=0",
                                                                   "every=-1,every=2",
                                                                   "rate=",
                                                                   "momentum=1e400",
                                                                   "10Gbit",
                                                                   "1Gbit,-1us",
                                                                   "65537"});
  static const auto words = [] {
    std::vector<std::string> all;
    for (const auto& seed : seeds())
      for (auto& word : argumentsIn(textOf(ByteSpan(seed).subspan(1)))) all.push_back(std::move(word));
    for (const char* const option : {"--resume",
                                     "--seed",
                                     "--l2",
                                     "--momentum",
                                     "--prefetch",
                                     "--placement",
                                     "--keep",
                                     "--json",
                                     "--post-local",
                                     "--lr-scaling",
                                     "--strategy",
                                     "--width",
                                     "--examples",
                                     "--average-updaters",
                                     "--averaging-frequency",
                                     "--threads-per-worker",
                                     "--samples",
                                     "--steps",
                                     "--model",
                                     "--load",
                                     "--data-dir",
                                     "--train-examples",
                                     "--math-mode",
                                     "training.devices",
                                     "data.type",
                                     "network.layers[1]",
                                     "network.layers[99999999999999999999]",
                                     "training.strategy.",
                                     "listeners.page",
                                     "--help"})
      all.emplace_back(option);
    return all;
  }();
  if (bytes.empty()) bytes.push_back('m');
  auto arguments = argumentsIn(textOf(ByteSpan(bytes).subspan(1)));
  arguments.erase(arguments.begin());
  for (std::size_t times = 1 + draw.below(3); times-- > 0;) {
    const auto at = arguments.begin() + static_cast<std::ptrdiff_t>(draw.below(arguments.size() + 1));
    const bool end = at == arguments.end();
    switch (draw.below(5)) {
      case 0:
        arguments.insert(at, draw.of(words));
        break;
      case 1:
        if (!end) arguments.erase(at);
        break;
      case 2:
        if (!end) *at = draw.of(words);
        break;
      case 3:
        if (!end) at->append(1, '=').append(draw.of(kValues));
        break;
      default:
        if (!end) *at = std::string(draw.of(kValues));
    }
  }
  const auto before = kPrograms.find(static_cast<char>(bytes[0])) % kPrograms.size();
  bytes = line(kPrograms[draw.oneIn(4) ? draw.below(kPrograms.size()) : before], arguments);
}

}  // namespace

const Target targets::command_line{"command_line", &run, &seeds, &mutate};

}  // namespace muster::fuzz
