#include <algorithm>
#include <map>
#include <new>
#include <string_view>

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/parallel/nodes/launched_processes.h"
#include "muster/parallel/parallel_wrapper.h"
#include "muster/parallel/runtime/placement.h"
#include "muster/parallel/strategies/option_fields.h"
#include "muster/parallel/training/internals.h"

namespace muster {
namespace {

constexpr int kMostWorkers = 1024;
constexpr int kMostWorkersOnGpu = 32;  // the most that one kernel merges
constexpr std::int64_t kMostPrefetched = 1 << 20;

/// Made beforehand: throwing a copy allocates nothing with operator new.
const OutOfMemory kShortage("build: memory has run out");

/// As in "cpu, cuda:0".
std::string namesOf(const std::vector<Device>& devices) {
  std::string names;
  for (const auto& device : devices) names += (names.empty() ? "" : ", ") + device.toString();
  return names;
}

void checkDevices(const ParallelOptions& o) {
  require(!o.devices.empty(), "devices: the list is empty");
  const auto deviceOf = [&](int worker) {
    return o.devices[static_cast<std::size_t>(worker) % o.devices.size()];
  };
  std::map<Device, int> workersOn;
  for (int w = 0; w < o.workers; ++w) {
    require(deviceOf(w).isCpu() == deviceOf(0).isCpu(),
            "devices: worker 0 would run on {} and worker {} on {}; the CPU and GPUs cannot train together "
            "yet, so name GPUs alone, or cpu alone",
            deviceOf(0).toString(), w, deviceOf(w).toString());
    ++workersOn[deviceOf(w)];
  }
  const auto available = availableDevices();
  for (const auto& device : o.devices)
    if (std::ranges::find(available, device) == available.end())
      throw DeviceUnavailable(fmt::format("devices: {} cannot be used; there is {}{}", device.toString(),
                                          namesOf(available),
                                          available.size() > 1 ? "" : ", as " + whyNoCuda()));
  for (const auto& [device, workers] : workersOn) {
    requireMathMode(device, o.mathMode);
    require(device.isCpu() || workers <= kMostWorkersOnGpu,
            "devices: {} would have {} of the {} workers, and one GPU merges at most {}", device.toString(),
            workers, o.workers, kMostWorkersOnGpu);
  }
}

/// Elastic nodes may be any number.
void checkAnyNumberOfNodes(const ParallelOptions& o, const Strategy& strategy) {
  try {
    for (const int nodes : {1, 2, 3}) strategy.blocks(nodes * o.workers);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(
        fmt::format("nodes: {} cannot train over elastic nodes, because their number changes: {}",
                    strategy.describe(), error.what()));
  }
}

void checkNodes(const ParallelOptions& o, const Strategy& strategy) {
  if (!o.nodesGiven)
    require(launchedProcesses() == "1",
            "nodes: a launcher has started {} processes; give nodes(Nodes::mpi()) or nodes(Nodes::gloo(...)) "
            "to train one model with all of them, or nodes(Nodes()) to let each train a model of its own",
            launchedProcesses());
  const int nodes = std::max(o.nodes.nodes(), o.nodes.elastic() ? 2 : 1);
  require(o.groups >= 1 && o.workers % o.groups == 0, "groups: {} do not divide {}", o.groups,
          plural(o.workers, "worker"));
  if (nodes == 1 && o.groups == 1) return;
  require(nodes == 1 || o.groups == 1, "groups({}): over {} nodes each node is a group, so leave groups out",
          o.groups, nodes);
  require(nodes <= kMostWorkers / o.workers, "workers: {} nodes of {} are more than {}", nodes, o.workers,
          kMostWorkers);
  for (const auto& device : o.devices)
    require(nodes > 1 || device.isCpu(),
            "groups: workers on GPUs are not supported yet, and one would be on {}", device.toString());
  if (nodes == 1) return;
  const StrategyTraits traits = strategy.traits(nodes * o.workers);
  require(!traits.arrivals, "nodes: {} takes workers as they arrive, which is not supported over nodes yet",
          strategy.describe());
  require(traits.whyNotOverNodes.empty(), "nodes: {}: {}", strategy.describe(), traits.whyNotOverNodes);
  if (o.nodes.elastic()) checkAnyNumberOfNodes(o, strategy);
}

}  // namespace

using Builder = ParallelWrapper::Builder;

Builder& Builder::internals(const detail::Internals& internals) {
  return set(options_.internals, std::make_shared<const detail::Internals>(internals));
}

AnyStrategy Builder::averaging() const {
  // Checked before `Averaging::validate`, so that messages name the options that the user has called.
  const auto until = synchronousUntil_.value_or(0);
  require(until >= 0, "synchronousUntil cannot be negative, got {}", until);
  detail::requireIterations("averagingFrequency", averagingFrequency_.value_or(1));
  return Averaging{
      .frequency = Period::postLocal(until, averagingFrequency_.value_or(1)),
      .updaterState = averageUpdaters_.value_or(true) ? UpdaterState::Average : UpdaterState::Keep,
      .measureDivergence = measureDivergence_.value_or(false)};
}

AnyStrategy Builder::resolveStrategy() const {
  if (strategy_) {
    const auto refuse = [](bool given, std::string_view option) {
      require(!given, "{}: the strategy has that among its own options; give it in strategy(...)", option);
    };
    refuse(trainingMode_.has_value(), "trainingMode");
    refuse(averagingFrequency_.has_value(), "averagingFrequency");
    refuse(synchronousUntil_.has_value(), "synchronousUntil");
    refuse(averageUpdaters_.has_value(), "averageUpdaters");
    refuse(measureDivergence_.has_value(), "measureDivergence");
    refuse(sharedGradients_.has_value(), "sharedGradients");
    return *strategy_;
  }
  const TrainingMode mode = trainingMode_.value_or(TrainingMode::Averaging);
  if (mode == TrainingMode::SharedGradients) {
    refuseAveragingOptions("with shared gradients workers are merged every iteration");
    SharedGradients options = sharedGradients_.value_or(SharedGradients{});
    if (averageUpdaters_ == false) options.updaterState = UpdaterState::Keep;
    return options;
  }
  require(!sharedGradients_, "sharedGradients: these options need TrainingMode::SharedGradients");
  if (mode == TrainingMode::Averaging) return averaging();
  require(mode == TrainingMode::SynchronousGradients, "trainingMode: there is no mode {}",
          static_cast<int>(mode));
  refuseAveragingOptions("with synchronous gradients workers are merged every iteration");
  require(averageUpdaters_.value_or(true),
          "averageUpdaters(false): with synchronous gradients the updaters' states are equal anyway");
  return SynchronousGradients{};
}

void Builder::refuseAveragingOptions(std::string_view reason) const {
  const auto frequency = averagingFrequency_.value_or(1), until = synchronousUntil_.value_or(0);
  require(frequency == 1, "averagingFrequency({}): {}, so it must be 1", frequency, reason);
  require(until == 0, "synchronousUntil({}): {} for ever, so it has no meaning", until, reason);
  require(!measureDivergence_.value_or(false),
          "measureDivergence(true): {}, and their parameters stay equal, bit for bit", reason);
}

ParallelWrapper Builder::build() try {
  const auto& o = options_;
  require(o.workers >= 1 && o.workers <= kMostWorkers, "workers must be between 1 and {}, got {}",
          kMostWorkers, o.workers);
  options_.strategy = resolveStrategy();
  const auto strategy = o.strategy.make();
  checkNodes(o, *strategy);
  strategy->blocks(o.workers * o.nodes.nodes());  // throws if it cannot merge so many workers
  require(o.prefetchBuffer >= 0 && o.prefetchBuffer <= kMostPrefetched,
          "prefetchBuffer must be between 0 and {} batches, got {}", kMostPrefetched, o.prefetchBuffer);
  require(o.threadsPerWorker >= 1 && o.threadsPerWorker <= kMostWorkers,
          "threadsPerWorker must be between 1 and {}, got {}", kMostWorkers, o.threadsPerWorker);
  checkDevices(o);
  for (std::size_t i = 0; i < o.listeners.size(); ++i) {
    require(o.listeners[i] != nullptr, "listeners: one of them is null");
    for (std::size_t j = 0; j < i; ++j)
      require(o.listeners[i] != o.listeners[j],
              "listeners: number {} is number {} again; each is called once", i, j);
  }
  return ParallelWrapper(model_, options_);
} catch (const std::bad_alloc&) {
  throw kShortage;
}

}  // namespace muster
