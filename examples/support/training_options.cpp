#include "examples/support/training_options.h"

#include <algorithm>
#include <array>

#include "muster/core/base/plural.h"
#include "muster/core/optim/updater.h"
#include "muster/parallel/strategies/named_strategy.h"

namespace example {
namespace {

constexpr int kMostWorkers = 1024;  // over all nodes

}  // namespace

using muster::PlacementWish;
using muster::TrainingMode;

void WorkerOptions::describe(CommandLine& line) {
  line.add("workers", workers, "N", "threads, each with a replica of the network", between(1, kMostWorkers));
  line.add("mode", mode, "NAME",
           "averaging (of parameters), synchronous (gradients averaged every iteration) or shared (encoded "
           "gradients)");
  line.add("averaging-frequency", averagingFrequency, "N",
           "iterations of each worker between averages; only for averaging", atLeast(1));
  line.add("strategy", strategy, "NAME",
           "the averaging rule, by name, instead of the options above: averaging, outer, diloco, "
           "easgd, ...; help: a table of all with their options, defaults and sources");
  line.add("strategy-options", strategyOptions, "LIST",
           "options of the strategy, as in rate=0.7,momentum=0.9,every=100");
  line.topic("strategy", [this] { return muster::describeStrategies(workers); });
  line.add("threads-per-worker", threadsPerWorker, "N", "threads that one worker uses", between(1, 1024));
  line.add("pin-threads", pinThreads, "BOOL", "pin each worker to cores of its own");
  line.add("math-mode", mathMode, "NAME",
           "number type to which factors of matrix products and convolutions are rounded: fp32 (not "
           "rounded), tf32 (GPUs) or bf16 (GPUs, and CPUs with AVX-512 BF16 or AMX); sums and parameters are "
           "fp32. If it is not given: tf32 on GPUs that have it, else fp32");
  deviceOption.describe(line);
}

int WorkerOptions::workersOfAll() const {
  const int count = nodeOptions.count();
  muster::require(count <= kMostWorkers / workers, "--workers: {} of {} are more than {} workers",
                  muster::plural(count, "node"), muster::plural(workers, "worker"), kMostWorkers);
  return workers * count;
}

void WorkerOptions::take(const CommandLine& line) {
  const int all = workersOfAll();
  if (!strategy.empty()) {
    line.refuse({"mode", "averaging-frequency"},
                "cannot be combined with --strategy, which says when and how workers are merged; set every=N "
                "in --strategy-options");
    // Check for the workers of all nodes, which are not connected yet.
    muster::strategyNamed(strategy, strategyOptions, all);
  } else {
    line.refuse({"strategy-options"}, "needs --strategy");
  }
  if (mode != TrainingMode::Averaging) {
    line.refuse({"averaging-frequency"}, "needs --mode averaging; the other modes merge every iteration");
    averagingFrequency = 1;
  }
  device = deviceOption.choose();
}

muster::ParallelWrapper::Builder WorkerOptions::builder(muster::Model& model) const {
  muster::ParallelWrapper::Builder builder(model);
  builder.workers(workers).devices(device.devices).threadsPerWorker(threadsPerWorker).pinThreads(pinThreads);
  if (mathMode) builder.mathMode(*mathMode);
  if (strategy.empty())
    builder.trainingMode(mode).averagingFrequency(averagingFrequency);
  else
    builder.strategy(muster::strategyNamed(strategy, strategyOptions,
                                           nodes.elastic() ? workersOfAll() : workers * nodes.nodes()));
  if (nodes.nodes() > 1 || nodes.elastic()) builder.nodes(nodes);
  return builder;
}

std::vector<muster::HyperParameter> WorkerOptions::hyperParameters() const {
  std::vector<muster::HyperParameter> all = {{"workers", static_cast<double>(workers)}};
  if (!strategy.empty()) {
    all.emplace_back("strategy", strategy);
    all.emplace_back("strategy options", strategyOptions);
  } else {
    all.emplace_back("strategy", std::string(muster::nameOf(mode)));
    all.emplace_back("averaging frequency", static_cast<double>(averagingFrequency));
  }
  return all;
}

double defaultLearningRate(std::string_view updater) {
  return std::min(0.01, muster::Updater::registry().make(updater)->learningRate().at(0));
}

void describePlacement(CommandLine& line, PlacementWish& wish) {
  line.addParsed(
      "placement", "auto", "WHERE",
      "where the images are stored: device (whole on each GPU that trains, batches gathered there), host "
      "(each batch sent from the CPU) or auto (device if they fit). The results are the same",
      [&wish](const std::string& word) {
        muster::require(word == "auto" || word == "host" || word == "device",
                        "--placement must be auto, host or device, got {}", word);
        wish = muster::valueNamed<PlacementWish>("--placement", word);
      });
}

std::string placeImages(DataSets& data, PlacementWish wish, std::span<const muster::Device> devices,
                        int workers) {
  const auto chosen =
      muster::placeImages(std::array{data.train.get(), data.test.get()}, wish, devices, workers);
  data.placement = chosen.placement;
  const bool unasked = wish == PlacementWish::Auto && chosen.placement == muster::MemoryPlacement::Device;
  return chosen.why + (unasked ? "; --placement host sends each batch instead" : "");
}

}  // namespace example
