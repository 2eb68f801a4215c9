#include "muster/parallel/run/detail/watchers.h"

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <string_view>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/io/json_fields.h"
#include "muster/core/io/output_path.h"
#include "muster/core/listeners/checkpoint_listener.h"
#include "muster/core/listeners/progress_listener.h"
#include "muster/core/listeners/reduce_on_plateau.h"
#include "muster/core/listeners/score_listener.h"
#include "muster/core/listeners/watch_listener.h"
#include "muster/parallel/run/detail/monitors.h"
#include "muster/parallel/run/detail/saved_data.h"
#include "muster/parallel/run/report.h"

namespace muster::detail {

namespace {

std::chrono::nanoseconds minutes(double count) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double, std::ratio<60>>(count));
}

/// The listeners for progress: lines or a bar, or in a terminal rows for the workers and a curve.
void addProgress(bool terminal, Listeners& all) {
  if (!terminal) return all.push_back(std::make_shared<ProgressListener>());
  const auto watch = std::make_shared<WatchListener>();
  all.insert(all.end(), {watch, watch->workers()});
}

/// Whether the model may replace the best one: not if it diverged, which is logged.
using AcceptBest = std::function<bool(Trainer&)>;

AcceptBest refusesDiverged(std::shared_ptr<DivergenceCheck> check) {
  return [check = std::move(check)](Trainer& trainer) {
    try {
      check->requireNone(trainer.model());
      return true;
    } catch (const NonFiniteScore& diverged) {
      logWarning("the file of the best model is not replaced: {}", diverged.what());
      return false;
    }
  };
}

std::shared_ptr<EvaluationListener> testsOf(const RunListeners& l, LoadedData& data, const LineSink& sink) {
  return std::make_shared<EvaluationListener>(
      watched(data, "listeners.testEvery"), EvaluationOptions{.everyEpochs = l.testEvery,
                                                              .everyIterations = l.testIterations,
                                                              .data = data.validation ? "validation" : "test",
                                                              .sink = sink});
}

std::shared_ptr<Listener> plateauOf(const RunPlateau& p, LoadedData& data, const LineSink& sink) {
  const auto monitored = monitoredOf(p.monitored, data, "listeners.reduceOnPlateau");
  return std::make_shared<ReduceOnPlateau>(PlateauOptions{.validation = monitored.validation,
                                                          .monitor = monitored.monitor,
                                                          .mode = monitored.mode,
                                                          .factor = p.factor,
                                                          .patience = p.patience,
                                                          .minImprovement = p.minImprovement,
                                                          .minFactor = p.minFactor,
                                                          .sink = sink});
}

std::shared_ptr<Listener> checkpointsOf(const RunFile& run, LoadedData& data, const AcceptBest& acceptBest) {
  const auto& c = *run.listeners.checkpoints;
  CheckpointOptions policy{.directory = c.directory,
                           .everyEpochs = c.everyEpochs,
                           .everyIterations = c.everyIterations,
                           .every = minutes(c.everyMinutes),
                           .keepLast = c.keepLast,
                           .keepEveryEpochs = c.keepEveryEpochs,
                           .acceptBest = acceptBest,
                           .resumed = isSameFile(run.training.resume, c.directory),
                           .exclusive = run.training.nodes != "elastic",
                           .notes = notesOf(run, data)};
  if (c.best) policy.best = monitoredOf(*c.best, data, "listeners.checkpoints.best");
  return std::make_shared<CheckpointListener>(std::move(policy));
}

std::shared_ptr<EarlyStopping> stoppingOf(const RunFile& run, LoadedData& data, const AcceptBest& acceptBest,
                                          const LineSink& sink) {
  const auto& e = *run.listeners.earlyStopping;
  const auto monitored = monitoredOf(e.monitored, data, "listeners.earlyStopping");
  return std::make_shared<EarlyStopping>(EarlyStoppingOptions{.validation = monitored.validation,
                                                              .monitor = monitored.monitor,
                                                              .mode = monitored.mode,
                                                              .everyEpochs = e.everyEpochs,
                                                              .patience = e.patience,
                                                              .minImprovement = e.minImprovement,
                                                              .maxTime = minutes(e.maxMinutes),
                                                              .restoreBest = e.restoreBest,
                                                              .bestFile = e.bestFile,
                                                              .acceptBest = acceptBest,
                                                              .notes = notesOf(run, data),
                                                              .sink = sink});
}

}  // namespace

Watchers watch(const RunFile& run, LoadedData& data, Network& network, const Shown& shown) {
  const auto& l = run.listeners;
  Watchers watchers(shown.overNodes);
  watchers.diverged = std::make_shared<DivergenceCheck>(network, data.training());
  const auto acceptBest = refusesDiverged(watchers.diverged);
  const LineSink sink = shown.progress ? LineSink() : LineSink([](std::string_view) {});
  const auto add = [&](auto listener) { watchers.all.push_back(std::move(listener)); };
  if ((l.progress || shown.terminal) && shown.progress) addProgress(shown.terminal, watchers.all);
  if (l.scoreEvery > 0) add(std::make_shared<ScoreListener>(l.scoreEvery));
  if (l.testEvery > 0 || l.testIterations > 0) add(watchers.tests = testsOf(l, data, sink));
  add(watchers.record = std::make_shared<EpochRecord>(watchers.tests));
  if (l.reduceOnPlateau) add(plateauOf(*l.reduceOnPlateau, data, sink));
  if (l.checkpoints) add(checkpointsOf(run, data, acceptBest));
  if (l.earlyStopping) add(watchers.stopping = stoppingOf(run, data, acceptBest, sink));
  return watchers;
}

void requireModules(const RunListeners& listeners) {
  const auto refuse = [](bool asked, std::string_view field, std::string_view why) {
    require(!asked, "listeners.{}: {}", field, why);
  };
  if (!pagesBuilt()) {
    refuse(listeners.page, "page", kNoPage);
    refuse(!listeners.curves.empty(), "curves", kNoPage);
    refuse(!listeners.report.empty(), "report", kNoPage);
  }
  if (!tensorBoardBuilt()) refuse(!listeners.tensorBoard.empty(), "tensorBoard", kNoTensorBoard);
}

Watching watchingOf(const RunFile& run, const Watchers& watchers, bool first, bool shared) {
  const auto& l = run.listeners;
  const bool reported = !l.report.empty() && first;
  const bool known = run.training.nodes != "elastic";  // which node writes the report
  try {
    return Watching({.tensorBoard = l.tensorBoard,
                     .shared = shared,
                     .page = l.page && first,
                     .pagePort = static_cast<int>(l.pagePort),
                     .curves = first ? l.curves : "",
                     .group = l.group,
                     .still = reported,
                     .stillCurves = reported && known ? std::filesystem::path(l.report) / kReportCurves : ""},
                    watchers.tests);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("listeners: {}", error.what()));
  }
}

std::vector<HyperParameter> hyperParameters(const RunFile& run) {
  return {{"workers", static_cast<double>(run.training.workers)},
          {"strategy", run.training.strategy},
          {"strategy options", run.training.strategyOptions},
          {"batch", static_cast<double>(run.data.batch)},
          {"seed", static_cast<double>(run.data.seed)}};
}

}  // namespace muster::detail
