#include "examples/muster/compare/cell.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "examples/muster/compare/others_load.h"
#include "examples/muster/compare/recorder.h"
#include "examples/muster/pages.h"
#include "muster/core/base/error.h"
#include "muster/core/device/device.h"
#include "muster/core/nn/recompute_statistics.h"
#include "muster/parallel/run/session.h"
#include "muster/parallel/run/watchers.h"

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

template <typename E>
bool isA(const std::exception_ptr& cause) try {
  std::rethrow_exception(cause);
} catch (const E&) {
  return true;
} catch (...) {
  return false;
}

/// Tests with all workers. @throws NonFiniteScore for a model whose predictions are not finite.
AnyEvaluation test(auto& trainer, DataSetIterator& data) try {
  return trainer.evaluateTask(data);
} catch (const TrainingError& error) {
  if (!isA<InvalidArgument>(error.cause())) throw;  // shapes fit: a prediction is not finite
  throw NonFiniteScore(fmt::format("a test of the merged model: {}", describe(error.cause())));
}

bool hasStatistics(Model& model) {
  return std::ranges::any_of(model.blocks(), [](const StateBlock& block) {
    return block.kind == BlockKind::Statistics && block.values.elements() > 0;
  });
}

}  // namespace

std::optional<RunRecord> trainCell(const Cell& cell, const std::function<void(std::int64_t)>& progress,
                                   const std::stop_token& stop) {
  muster::RunFile run = cell.run;
  run.listeners = listenersOf(cell);
  const auto devices = muster::devicesOf(run.training);
  auto data = muster::loadData(run.data, run.training.placement, devices.devices,
                               static_cast<int>(run.training.workers), muster::knownBy(run, {}));
  const auto network = muster::makeNetwork(run, data);
  DataSetIterator& tested = cell.tuning ? *data.validation : *data.test;
  const auto recorder = std::make_shared<Recorder>(
      RecorderOptions{.testEvery = cell.tuning ? 0 : cell.testEvery,
                      .test = [&](Trainer& trainer) { return test(trainer, tested); },
                      .progress = progress});
  auto watchers = muster::watch(run, data, *network, {.progress = false});
  const auto watching = muster::watchingOf(run, watchers, /*first=*/true, /*shared=*/false);
  watching.addTo(watchers.all);
  watchers.all.push_back(recorder);
  RunRecord record{.arm = cell.arm,
                   .values = cell.values,
                   .seed = cell.seed,
                   .on = cell.tuning ? "validation" : "test",
                   .workers = run.training.workers,
                   .summed = run.training.strategy != "shared",
                   .cores = availableParallelism(),
                   .threads = run.training.workers * run.training.threadsPerWorker};
  const OthersLoad load;
  try {
    auto wrapper = muster::makeWrapper(run, devices, {}, *network, watchers.all);
    watching.describe(wrapper.plan(), network->summary());
    watching.options(muster::hyperParameters(run), {"score"}, cell.arm);
    watching.during([&] { wrapper.fit(data.training(), run.training.epochs, stop); });
    if (stop.stop_requested() && network->epoch() < run.training.epochs) return std::nullopt;
    record.othersBusy = load.cores();
    recorder->finish(test(wrapper, tested));
    watching.result("score", recorder->points().back().score);
    if (!cell.tuning && hasStatistics(*network)) {
      recomputeStatistics(*network, data.training());
      record.recomputed = {network->evaluateTask(tested).mainScore().second};
    }
  } catch (const TrainingError& error) {
    if (!isA<NonFiniteScore>(error.cause())) throw;
    record.failure = describe(error.cause());
  } catch (const NonFiniteScore& error) {
    record.failure = error.what();
  }
  record.loaded = OthersLoad::crowds(record.othersBusy, record.threads);
  record.points = recorder->points();
  record.computeSeconds = recorder->computeSeconds();
  if (!cell.curves.empty())
    program::writeCurves(cell.curves, {.run = fmt::format("{}, seed {}", cell.arm, cell.seed),
                                       .group = cell.arm,
                                       .failed = record.failure,
                                       .series = recorder->curves()});
  return record;
}

}  // namespace comparing
