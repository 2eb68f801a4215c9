#include "examples/muster/run_of.h"

#include <fmt/format.h>

namespace program {
namespace {

using namespace muster;

/// The name of the connection in run files.
std::string_view connection(const example::WorkerOptions& options) {
  if (options.nodes.elastic()) return "elastic";
  if (options.nodes.nodes() == 1) return "none";
  return options.nodeOptions.store.empty() ? "mpi" : "gloo";
}

/// Sets the strategy by name and its options in the form of `--strategy-options`.
void setStrategy(const example::WorkerOptions& options, RunTraining& training) {
  training.strategy = options.strategy.empty() ? std::string(nameOf(options.mode)) : options.strategy;
  training.strategyOptions = options.strategyOptions;
  if (options.strategy.empty() && options.mode == TrainingMode::Averaging)
    training.strategyOptions = fmt::format("every={}", options.averagingFrequency);
}

}  // namespace

RunFile runOf(const example::WorkerOptions& options, const example::DataChoice& choice,
              const example::DataSets& data, const ParallelWrapper& wrapper) {
  std::string devices;
  for (const auto& device : wrapper.options().devices)
    devices.append(devices.empty() ? "" : ",").append(device.toString());
  RunFile run{.data = {.type = data.name,
                       .directory = choice.directory.string(),
                       .trainExamples = choice.trainLimit().value_or(0),
                       .testExamples = choice.testLimit().value_or(0)},
              .network = {},
              .training = {.workers = options.workers,
                           .prefetch = wrapper.options().prefetchBuffer,
                           .threadsPerWorker = options.threadsPerWorker,
                           .pinThreads = options.pinThreads,
                           .devices = devices,
                           .placement = data.placement == MemoryPlacement::Device ? PlacementWish::Device
                                                                                  : PlacementWish::Host,
                           .nodes = std::string(connection(options))},
              .listeners = {.tensorBoard = options.watch.tensorBoard.string(),
                            .page = options.watch.page,
                            .pagePort = options.watch.pagePort,
                            .curves = options.watch.curves.string(),
                            .group = options.watch.group}};
  if (options.mathMode) run.training.mathMode = nameOf(*options.mathMode);
  setStrategy(options, run.training);
  return run;
}

}  // namespace program
