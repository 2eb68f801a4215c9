#include "muster/parallel/run/detail/preparation.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/core/io/json_value.h"
#include "muster/parallel/nodes/launched_processes.h"
#include "muster/parallel/run/detail/keep_network.h"
#include "muster/parallel/run/detail/monitors.h"
#include "muster/parallel/run/detail/network_facts.h"
#include "muster/parallel/run/detail/resuming.h"
#include "muster/parallel/run/detail/run_checks.h"
#include "muster/parallel/run/detail/run_devices.h"
#include "muster/parallel/run/detail/run_network.h"
#include "muster/parallel/run/detail/run_settings.h"
#include "muster/parallel/run/detail/saved_data.h"
#include "muster/parallel/run/detail/watchers.h"
#include "muster/parallel/run/named_networks.h"
#include "muster/parallel/strategies/named_strategy.h"

namespace muster::detail {
namespace {

/// @throws InvalidArgument naming the field if the strategy cannot merge so many workers.
void requireMerges(const AnyStrategy& strategy, int workers) try {
  strategy.make()->blocks(workers);
} catch (const InvalidArgument& error) {
  throw InvalidArgument(strategyProblem(error.what(), strategy));
}

}  // namespace

PreparedRun prepareRun(RunFile run, const NodeOptions& nodes,
                       const std::function<void(const PreparedRun&)>& beforeData) {
  PreparedRun p{.run = std::move(run)};
  requireModules(p.run.listeners);
  p.devices = devicesOf(p.run.training);
  chooseNodes(p.run, nodes);
  p.nodes = nodesOf(p.run.training, nodes);
  p.nodeCount = nodes.count();
  p.resumed = resumedBy(p.run, p.nodes.nodes());
  if (p.resumed.file.empty()) checkNewRun(p.run);  // training.resume may lead to nothing
  if (beforeData) beforeData(p);
  requireUsable(p.devices);
  p.data = loadData(p.run.data, p.run.training.placement, p.devices.devices,
                    static_cast<int>(p.run.training.workers), knownBy(p.run, p.resumed.file));
  p.run.data.type = p.data.type;
  if (!p.resumed.file.empty()) requireSameData(p.resumed.file, p.run.data, p.data);
  require(p.run.listeners.report.empty() || p.data.test || p.data.validation,
          "listeners.report: needs data to test with, or data.validationExamples");
  p.network = makeNetwork(p.run, p.data);
  if (p.first()) requireDiskRoom(p.run, *p.network);
  if (!p.resumed.file.empty()) {
    loadState(*p.network, p.resumed.file);
    p.resumed.batches = batchesTrained(*p.network);
  }
  checkMonitors(p.run, p.data, *p.network);
  p.data.contents.earlier = earlierTrainings(p.run, p.resumed.file);
  p.warnings = dataWarnings(p.run, p.data);
  for (auto& remark : {weightsRemark(p.run.listeners, p.data),
                       isNamedNetwork(p.run.network) ? numbersRemark(*p.network, p.data) : ""})
    if (!remark.empty()) p.warnings.push_back(remark);
  return p;
}

void requireOwnDirectory(const PreparedRun& prepared) {
  if (!prepared.first() || prepared.nodes.elastic()) return;
  requireNoOtherTraining(prepared.run);
  requireOwnCheckpoints(prepared.run, prepared.resumed.file);
}

RunDevices devicesOf(const RunTraining& training) {
  if (training.devices == "auto") return chooseUnasked();
  return devicesNamed("training.devices", training.devices);
}

void chooseNodes(RunFile& run, const NodeOptions& options) {
  auto& nodes = run.training.nodes;
  const int count = options.count();  // checks what the launcher says
  if (nodes == "auto")
    nodes = !options.store.empty()       ? options.minNodes ? "elastic" : "gloo"
            : launchedProcesses() != "1" ? "mpi"
                                         : "none";
  checkNodes(run);
  constexpr int kMostWorkers = 1024;
  require(nodes == "none" || count <= kMostWorkers / run.training.workers,
          "training.workers: {} of {} are more than {} workers", plural(count, "node"),
          plural(run.training.workers, "worker"), kMostWorkers);
}

Nodes nodesOf(const RunTraining& training, NodeOptions options) {
  if (training.nodes == "none") return {};
  if (training.nodes == "gloo" || training.nodes == "elastic") {
    const bool elastic = training.nodes == "elastic";
    require(!options.store.empty(), "training.nodes: {} needs MUSTER_STORE{} and MUSTER_INTERFACE",
            training.nodes, elastic ? "" : ", MUSTER_NODE, MUSTER_NODES");
    options.minNodes = elastic ? std::optional(options.minNodes.value_or(1)) : std::nullopt;
    return options.connect();
  }
  return nodesByMpi();
}

InputDescription knownBy(const RunFile& run, const std::filesystem::path& resumed) {
  if (!resumed.empty()) return readInputDescription(resumed);
  if (run.training.initialModel.empty()) return {};
  auto known = readInputDescription(run.training.initialModel);
  // The weights of one set of pictures are a start for another one with other classes.
  return known.pictures ? InputDescription{} : known;
}

void requireDiskRoom(const RunFile& run, Network& network) {
  const auto bytes = savedBytes(network);
  requireDiskRoom(run.training.model, bytes);
  if (const auto& c = run.listeners.checkpoints) requireDiskRoom(c->directory, bytes);
  if (const auto& e = run.listeners.earlyStopping) requireDiskRoom(e->bestFile, bytes);
}

std::string learningRateOf(const RunFile& run) {
  constexpr std::string_view kField = "network.updater.learningRate";
  const auto network = parseJson(run.network);
  boost::system::error_code missing;  // a missing field has the default
  const auto* rate = network.find_pointer("/updater/learningRate", missing);
  if (rate == nullptr) return fmt::format("the default of {}", kField);
  const auto* number = rate->find_pointer("/value", missing);
  return fmt::format("{} {}", kField, printJsonLine(number != nullptr ? *number : *rate));
}

ParallelWrapper makeWrapper(const RunFile& run, const RunDevices& devices, const Nodes& nodes,
                            Network& network, const Listeners& listeners, int elastic) {
  const auto& t = run.training;
  const auto strategy = run.makeStrategy(nodes.elastic() ? elastic : nodes.nodes());
  ParallelWrapper::Builder builder(network);
  builder.workers(static_cast<int>(t.workers))
      .strategy(strategy)
      .prefetchBuffer(t.prefetch)
      .threadsPerWorker(static_cast<int>(t.threadsPerWorker))
      .pinThreads(t.pinThreads)
      .reportScoreAfterAveraging(t.reportScore)
      .devices(devices.devices)
      .groups(static_cast<int>(t.groups))
      .listeners(listeners);
  if (const auto mode = mathModeOf(t)) builder.mathMode(*mode);
  if (nodes.nodes() > 1 || nodes.elastic()) builder.nodes(nodes);
  try {
    return builder.build();
  } catch (const InvalidArgument& error) {
    requireMerges(strategy, static_cast<int>(t.workers) * nodes.nodes());
    throw InvalidArgument(fmt::format("training.{}", error.what()));
  }
}

std::string periodRemark(const RunFile& run, std::int64_t batches, int nodes) {
  const std::int64_t workers = run.training.workers * nodes, iterations = (batches + workers - 1) / workers;
  if (workers == 1) return {};
  for (const auto& option : optionsOf(run.makeStrategy(nodes)))
    if (std::int64_t every = 0;
        option.name == "every" && (every = std::atoll(option.preset.c_str())) > iterations)
      return fmt::format(
          "the replicas are merged at the end of each epoch only: it has {}, and training.strategy.every is "
          "{}",
          plural(iterations, "iteration"), every);
  return {};
}

std::string checkSaved(Network& network, const std::filesystem::path& path, LoadedData& data) {
  Batch next, batch;
  DataSetIterator& from = data.test ? *data.test : data.any();
  from.reset(0);
  require(from.next(next), "data: there are no examples");
  next.gatherInto(batch);
  Tensor here, there;
  network.output(batch, here);
  Network::load(path)->output(batch, there);
  if (here.shape() != there.shape() || std::memcmp(here.raw(), there.raw(), here.bytes()) != 0)
    throw FileError(path,
                    "was saved, but what was loaded from it predicts something else: another process has "
                    "replaced the file, or the disk changed it");
  return "loaded again, it gives the same outputs, bit for bit";
}

}  // namespace muster::detail
