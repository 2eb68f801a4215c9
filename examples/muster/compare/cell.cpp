#include "examples/muster/compare/cell.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "examples/muster/compare/base_data.h"
#include "examples/muster/pages.h"
#include "muster/core/base/error.h"
#include "muster/core/comparison/run_recorder.h"
#include "muster/core/eval/non_finite_prediction.h"
#include "muster/core/nn/recompute_statistics.h"
#include "muster/parallel/run/detail/preparation.h"
#include "muster/parallel/run/detail/run_network.h"
#include "muster/parallel/run/detail/watchers.h"
#include "muster/parallel/run/prepared_run.h"

namespace comparing {
namespace {

using namespace muster;

/// The listeners that change a training, and TensorBoard, a directory for each run.
muster::RunListeners listenersOf(const Cell& cell) {
  const auto& all = cell.run.listeners;
  muster::RunListeners listeners{
      .progress = false, .earlyStopping = all.earlyStopping, .reduceOnPlateau = all.reduceOnPlateau};
  if (listeners.earlyStopping) listeners.earlyStopping->bestFile.clear();
  if (!all.tensorBoard.empty() && !cell.tuning)
    listeners.tensorBoard =
        std::filesystem::path(all.tensorBoard) / cell.arm / fmt::format("seed-{}", cell.seed);
  return listeners;
}

/// The score; empty if it or a prediction is not finite.
std::vector<double> scoreOf(Network& network, DataSetIterator& data) try {
  const double score = network.evaluateTask(data).mainScore().second;
  return std::isfinite(score) ? std::vector{score} : std::vector<double>{};
} catch (const NonFinitePrediction&) {
  return {};
}

std::string resultName(const Network& network) {
  return network.task() == Task::Regression ? "test R2" : "test accuracy";
}

/// Whether there are statistics that `recomputeStatistics` replaces, as of batch normalisation; those that
/// Normalise scales its input by are of the training data already.
bool hasStatistics(Model& model) {
  return std::ranges::any_of(model.blocks(), [](const StateBlock& block) {
    return block.kind == BlockKind::Statistics && block.merge == muster::MergeRule::Moments &&
           block.values.elements() > 0;
  });
}

}  // namespace

std::optional<RunRecord> trainCell(const Cell& cell, const std::function<void(std::int64_t)>& progress,
                                   const std::stop_token& stop) {
  muster::RunFile run = cell.run;
  run.listeners = listenersOf(cell);
  const auto devices = muster::detail::devicesOf(run.training);
  auto data = loadAgain([&] {
    return muster::loadData(run.data, run.training.placement, devices.devices,
                            static_cast<int>(run.training.workers), muster::detail::knownBy(run, {}));
  });
  const auto network = muster::detail::makeNetwork(run, data);
  DataSetIterator& tested = cell.tuning ? *data.validation : *data.test;
  const auto recorder = std::make_shared<RunRecorder>(
      tested, RunRecorderOptions{.arm = cell.arm,
                                 .settings = cell.settings,
                                 .seed = cell.seed,
                                 .on = cell.tuning ? "validation" : "test",
                                 .testEvery = cell.tuning ? 0 : cell.testEvery,
                                 .threadsPerWorker = run.training.threadsPerWorker,
                                 .classWeights = data.classWeights,
                                 .progress = progress});
  auto watchers = muster::detail::watch(run, data, *network, {.progress = false});
  const auto watching = muster::detail::watchingOf(run, watchers, /*first=*/true, /*shared=*/false);
  watching.addTo(watchers.all);
  watchers.all.push_back(recorder);
  RunRecord record;
  try {
    auto wrapper = muster::detail::makeWrapper(run, devices, {}, *network, watchers.all);
    watching.describe(wrapper.plan(), network->summary());
    watching.options(muster::detail::hyperParameters(run), {resultName(*network)}, cell.arm);
    watching.during([&] { wrapper.fit(data.training(), run.training.epochs, stop); });
    if (stop.stop_requested() && network->epoch() < run.training.epochs) return std::nullopt;
    watchers.diverged->requireNone(*network);
    record = recorder->finish(wrapper);
  } catch (const Error&) {
    record = recorder->failed(std::current_exception());
  }
  if (!record.failed()) {
    watching.result(resultName(*network), record.end().score);
    if (!cell.tuning && hasStatistics(*network)) {
      recomputeStatistics(*network, data.training());
      record.recomputed = scoreOf(*network, tested);
    }
  }
  auto curves = recorder->curves();
  if (watchers.stopping && run.listeners.earlyStopping->restoreBest && watchers.stopping->best() &&
      !record.points.empty())
    curves["mark/restored"] = {{record.end().iterations, 1}};
  if (!cell.curves.empty())
    program::writeCurves(cell.curves, {.run = fmt::format("{}, seed {}", cell.arm, cell.seed),
                                       .group = cell.arm,
                                       .failed = record.failure,
                                       .series = std::move(curves)});
  return record;
}

}  // namespace comparing
