#include "muster/parallel/run/watchers.h"

#include <fmt/format.h>

#include <chrono>
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
#include "muster/parallel/run/prepared_run.h"
#include "muster/parallel/run/report.h"
#include "muster/parallel/run/resuming.h"

namespace muster {

namespace {

std::chrono::nanoseconds minutes(double count) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double, std::ratio<60>>(count));
}

std::string noTests(std::string_view who) {
  return fmt::format("{} needs data to test with: data.validationExamples, or a test set", who);
}

std::string noValidation(std::string_view who) {
  return fmt::format(
      "{} chooses by examples that are neither trained on nor tested with: give data.validationExamples, a "
      "number of training examples to hold out, or the monitor trainingScore",
      who);
}

/// The validation data, or if there are none the test data: to look at, not to choose by.
DataSetIterator& watched(LoadedData& data, std::string_view who) {
  if (!data.validation && !data.test) throw InvalidArgument(noTests(who));
  return data.validation ? *data.validation : *data.test;
}

Monitored monitoredOf(const RunMonitor& m, LoadedData& data, std::string_view who) {
  Monitored monitored{.monitor = m.monitor};
  if (!m.mode.empty()) monitored.mode = valueNamed<MonitorMode>(who, m.mode);
  if (m.monitor == Monitor::TrainingScore) return monitored;
  if (!data.validation) throw InvalidArgument(noValidation(who));
  monitored.validation = data.validation.get();
  return monitored;
}

/// @throws InvalidArgument if listeners need examples that the run does not hold out, naming all of them, and
///         how to do without.
void requireExamples(const RunListeners& l, const LoadedData& data) {
  std::vector<std::pair<std::string, std::string>> lacking;  // field, and a set that turns it off
  const auto test = [&](std::int64_t every, const std::string& field) {
    if (every > 0 && !data.validation && !data.test) lacking.emplace_back(field, field + "=0");
  };
  const auto choose = [&](const RunMonitor* monitor, const std::string& field) {
    if (monitor && monitor->monitor != Monitor::TrainingScore && !data.validation)
      lacking.emplace_back(field, field + "=null");
  };
  test(l.testEvery, "listeners.testEvery");
  test(l.testIterations, "listeners.testIterations");
  const auto tests = lacking.size();
  choose(l.reduceOnPlateau ? &l.reduceOnPlateau->monitored : nullptr, "listeners.reduceOnPlateau");
  choose(l.checkpoints && l.checkpoints->best ? &*l.checkpoints->best : nullptr,
         "listeners.checkpoints.best");
  choose(l.earlyStopping ? &l.earlyStopping->monitored : nullptr, "listeners.earlyStopping");
  if (lacking.empty()) return;
  auto text = tests > 0 ? noTests(lacking.front().first) : noValidation(lacking.front().first);
  if (lacking.size() > 1) {
    std::string others, sets;
    for (const auto& [field, off] : lacking) {
      if (&field != &lacking.front().first) others += (others.empty() ? "" : ", ") + field;
      sets += " --set " + off;
    }
    text += fmt::format("; so {} {}; without them:{}", lacking.size() == 2 ? "does" : "do", others, sets);
  }
  throw InvalidArgument(text);
}

/// The listeners for progress: lines or a bar, or in a terminal rows for the workers and a curve.
void addProgress(bool terminal, Listeners& all) {
  if (!terminal) return all.push_back(std::make_shared<ProgressListener>());
  const auto watch = std::make_shared<WatchListener>();
  all.insert(all.end(), {watch, watch->workers()});
}

}  // namespace

void checkMonitors(const RunFile& run, LoadedData& data, Network& network) {
  const auto check = [&](const RunMonitor& m, std::string_view who) {
    const auto monitored = monitoredOf(m, data, who);
    monitored.validate(who);
    const auto of = m.monitor == Monitor::R2    ? Task::Regression
                    : m.monitor == Monitor::Auc ? Task::Labels
                                                : network.task();
    require(network.task() == of, "{}: {} is a score of a {}, and this network is for {}; monitor its loss",
            who, nameOf(m.monitor), of == Task::Regression ? "regression" : "network with several labels",
            network.task() == Task::Classification ? "classes"
            : network.task() == Task::Regression   ? "numbers"
                                                   : "labels");
    monitored.requireFits(who, network);
  };
  const auto& l = run.listeners;
  requireExamples(l, data);
  if (l.reduceOnPlateau) check(l.reduceOnPlateau->monitored, "listeners.reduceOnPlateau");
  if (l.checkpoints && l.checkpoints->best) check(*l.checkpoints->best, "listeners.checkpoints.best");
  if (l.earlyStopping) check(l.earlyStopping->monitored, "listeners.earlyStopping");
}

Watchers watch(const RunFile& run, LoadedData& data, Network& network, const Shown& shown) {
  const auto& l = run.listeners;
  Watchers watchers(shown.overNodes);
  watchers.diverged = std::make_shared<DivergenceCheck>(network, data.training());
  const auto acceptBest = [check = watchers.diverged](Trainer& trainer) {
    try {
      check->requireNone(trainer.model());
      return true;
    } catch (const NonFiniteScore& diverged) {
      logWarning("the file of the best model is not replaced: {}", diverged.what());
      return false;
    }
  };
  const LineSink quietly = shown.progress ? LineSink() : LineSink([](std::string_view) {});
  const auto add = [&](auto listener) { watchers.all.push_back(std::move(listener)); };
  if ((l.progress || shown.terminal) && shown.progress) addProgress(shown.terminal, watchers.all);
  if (l.scoreEvery > 0) add(std::make_shared<ScoreListener>(l.scoreEvery));
  if (l.testEvery > 0 || l.testIterations > 0) {
    watchers.tests = std::make_shared<EvaluationListener>(
        watched(data, "listeners.testEvery"),
        EvaluationOptions{.everyEpochs = l.testEvery,
                          .everyIterations = l.testIterations,
                          .data = data.validation ? "validation" : "test",
                          .sink = quietly});
    add(watchers.tests);
  }
  watchers.record = std::make_shared<EpochRecord>(watchers.tests);
  add(watchers.record);
  if (const auto& p = l.reduceOnPlateau) {
    const auto monitored = monitoredOf(p->monitored, data, "listeners.reduceOnPlateau");
    add(std::make_shared<ReduceOnPlateau>(PlateauOptions{.validation = monitored.validation,
                                                         .monitor = monitored.monitor,
                                                         .mode = monitored.mode,
                                                         .factor = p->factor,
                                                         .patience = p->patience,
                                                         .minImprovement = p->minImprovement,
                                                         .minFactor = p->minFactor,
                                                         .sink = quietly}));
  }
  if (const auto& c = l.checkpoints) {
    CheckpointOptions policy{.directory = c->directory,
                             .everyEpochs = c->everyEpochs,
                             .everyIterations = c->everyIterations,
                             .every = minutes(c->everyMinutes),
                             .keepLast = c->keepLast,
                             .keepEveryEpochs = c->keepEveryEpochs,
                             .acceptBest = acceptBest,
                             .resumed = isSameFile(run.training.resume, c->directory),
                             .exclusive = run.training.nodes != "elastic",
                             .notes = notesOf(run)};
    if (c->best) policy.best = monitoredOf(*c->best, data, "listeners.checkpoints.best");
    add(std::make_shared<CheckpointListener>(std::move(policy)));
  }
  if (const auto& e = l.earlyStopping) {
    const auto monitored = monitoredOf(e->monitored, data, "listeners.earlyStopping");
    watchers.stopping =
        std::make_shared<EarlyStopping>(EarlyStoppingOptions{.validation = monitored.validation,
                                                             .monitor = monitored.monitor,
                                                             .mode = monitored.mode,
                                                             .everyEpochs = e->everyEpochs,
                                                             .patience = e->patience,
                                                             .minImprovement = e->minImprovement,
                                                             .maxTime = minutes(e->maxMinutes),
                                                             .restoreBest = e->restoreBest,
                                                             .bestFile = e->bestFile,
                                                             .acceptBest = acceptBest,
                                                             .notes = notesOf(run),
                                                             .sink = quietly});
    add(watchers.stopping);
  }
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

}  // namespace muster
