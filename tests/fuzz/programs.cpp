#include "tests/fuzz/programs.h"

#include <cmath>
#include <span>

#include "examples/char_lstm/options.h"
#include "examples/compare_convergence/options.h"
#include "examples/fine_tune/options.h"
#include "examples/lenet_from_scratch/options.h"
#include "examples/mnist_convnet/options.h"
#include "examples/muster/run_file.h"
#include "examples/resnet18_fashion/options.h"
#include "muster/core/nn/layers.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/fuzz/target.h"

namespace muster::fuzz {
namespace {

void expectSound(const example::WorkerOptions& o) {
  expect(o.workers >= 1 && o.workers <= 1024 && o.threadsPerWorker >= 1 && o.averagingFrequency >= 1,
         "numbers of workers out of range");
}

/// A run file with these values of `--set`.
void readSets(std::span<const std::string> sets) {
  static const std::string text = runFileText();
  const auto run = program::RunFile::parse(text, sets);
  const auto written = run.toJson();
  expect(program::RunFile::parse(written).toJson() == written,
         "a run that was read and written is another one");
  run.makeStrategy(1);
}

}  // namespace

std::string runFileText() {
  program::RunFile run;
  run.data.type = "generated";
  run.network =
      MultiLayerConfiguration{.inputShape = {1, 28, 28}, .layers = {Output{.classes = 10}}}.toJson();
  return run.toJson();
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

}  // namespace muster::fuzz
