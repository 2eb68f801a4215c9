#include "muster/parallel/run/detail/run_checks.h"

#include <algorithm>
#include <cmath>

#include "muster/core/base/error.h"
#include "muster/core/comparison/network_link.h"
#include "muster/core/device/device.h"
#include "muster/core/io/network_json.h"
#include "muster/datasets/source/detail/field_rules.h"
#include "muster/parallel/run/detail/comparison_fields.h"
#include "muster/parallel/run/detail/run_overrides.h"
#include "muster/parallel/run/named_networks.h"
#include "muster/parallel/strategies/named_strategy.h"

namespace muster::detail {
namespace {

constexpr std::int64_t kMost = kMostCounted;

/// Limits minutes so that they fit the clock's 64-bit nanoseconds.
void requireMinutes(std::string_view path, double value) {
  constexpr double kMostMinutes = 1e8;  // 190 years
  require(value >= 0 && value <= kMostMinutes, "{} must be between 0 and {}, got {}", path, kMostMinutes,
          value);
}

/// Whether so many minutes are more than 0 to the clock.
bool lasts(double minutes) {
  return minutes * 60e9 >= 1;  // nanoseconds
}

void checkTraining(const RunTraining& t) {
  requireBetween("training.workers", t.workers, 1, 1024);
  requireBetween("training.epochs", t.epochs, 1, 1 << 30);
  requireBetween("training.prefetch", t.prefetch, 0, 1 << 20);
  requireBetween("training.threadsPerWorker", t.threadsPerWorker, 1, 1024);
  requireBetween("training.groups", t.groups, 1, 1024);
  require(
      t.nodes == "auto" || t.nodes == "none" || t.nodes == "mpi" || t.nodes == "gloo" || t.nodes == "elastic",
      "training.nodes must be auto, none, mpi, gloo or elastic, got {}", t.nodes);
  require(!t.model.empty(), "training.model: the trained model needs the name of a file");
  require(t.resume.empty() || t.initialModel.empty(),
          "training.initialModel and training.resume: a training begins with one of them");
  if (t.devices != "auto") try {
      Device::parseList(t.devices);
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(fmt::format("training.devices {}: {}", t.devices, error.what()));
    }
}

/// Whether its values are from 0 to 1.
bool isShare(Monitor monitor) {
  return monitor == Monitor::Accuracy || monitor == Monitor::Auc || monitor == Monitor::F1;
}

void checkMonitor(std::string_view path, const RunMonitor& m) {
  require(m.monitor != Monitor::Own,
          "{}.monitor: own is for programs; there are accuracy, loss, r2, auc, f1, trainingScore", path);
  require(m.mode.empty() || m.mode == "min" || m.mode == "max",
          "{}.mode must be min or max, or left out; got \"{}\"", path, m.mode);
  const auto best = nameOf(*modeOf(m.monitor));
  require(m.mode.empty() || m.mode == best,
          "{}.mode {} contradicts {}.monitor {}, of which a {} one is better", path, m.mode, path,
          nameOf(m.monitor), best == "max" ? "larger" : "smaller");
}

void checkCheckpoints(const RunCheckpoints& c) {
  require(!c.directory.empty(), "listeners.checkpoints.directory: is missing");
  requireBetween("listeners.checkpoints.everyEpochs", c.everyEpochs, 0, kMost);
  requireBetween("listeners.checkpoints.everyIterations", c.everyIterations, 0, kMost);
  requireMinutes("listeners.checkpoints.everyMinutes", c.everyMinutes);
  requireBetween("listeners.checkpoints.keepLast", c.keepLast, 0, kMost);
  requireBetween("listeners.checkpoints.keepEveryEpochs", c.keepEveryEpochs, 0, kMost);
  require(c.everyEpochs > 0 || c.everyIterations > 0 || lasts(c.everyMinutes),
          "listeners.checkpoints.everyEpochs, everyIterations and everyMinutes are 0, so nothing would be "
          "saved");
  require(c.keepEveryEpochs == 0 || c.keepLast > 0,
          "listeners.checkpoints.keepEveryEpochs {} has no effect with keepLast 0, which keeps all",
          c.keepEveryEpochs);
  if (c.best) checkMonitor("listeners.checkpoints.best", *c.best);
}

void checkEarlyStopping(const RunEarlyStopping& e) {
  checkMonitor("listeners.earlyStopping", e.monitored);
  requireBetween("listeners.earlyStopping.everyEpochs", e.everyEpochs, 1, kMost);
  requireBetween("listeners.earlyStopping.patience", e.patience, 0, kMost);
  requireNotNegative("listeners.earlyStopping.minImprovement", e.minImprovement);
  requireMinutes("listeners.earlyStopping.maxMinutes", e.maxMinutes);
  require(e.patience > 0 || lasts(e.maxMinutes) || e.restoreBest || !e.bestFile.empty(),
          "listeners.earlyStopping.patience and maxMinutes are both 0, and neither restoreBest nor bestFile "
          "keeps the best state, so it would do nothing");
}

void checkPlateau(const RunPlateau& p) {
  checkMonitor("listeners.reduceOnPlateau", p.monitored);
  require(p.factor > 0 && p.factor < 1, "listeners.reduceOnPlateau.factor must be between 0 and 1, got {}",
          p.factor);
  requireBetween("listeners.reduceOnPlateau.patience", p.patience, 1, kMost);
  requireNotNegative("listeners.reduceOnPlateau.minImprovement", p.minImprovement);
  require(p.minFactor >= 0 && p.minFactor < 1,
          "listeners.reduceOnPlateau.minFactor must be from 0 to below 1, got {}", p.minFactor);
}

void checkListeners(const RunListeners& l) {
  requireBetween("listeners.scoreEvery", l.scoreEvery, 0, kMost);
  requireBetween("listeners.testEvery", l.testEvery, 0, kMost);
  requireBetween("listeners.testIterations", l.testIterations, 0, kMost);
  requireBetween("listeners.pagePort", l.pagePort, 0, 65535);
  require(l.pagePort == 0 || l.page, "listeners.pagePort needs listeners.page");
  require(l.group.empty() || !l.curves.empty(), "listeners.group needs listeners.curves");
  require(l.curves.empty() || l.curves.ends_with(".curves.jsonl"),
          "listeners.curves must be a name that ends in .curves.jsonl, by which muster page finds it; got {}",
          l.curves);
  if (l.checkpoints) checkCheckpoints(*l.checkpoints);
  if (l.earlyStopping) checkEarlyStopping(*l.earlyStopping);
  if (l.reduceOnPlateau) checkPlateau(*l.reduceOnPlateau);
}

/// Checks the network's configuration like a configuration file. Prefixes paths in messages: "layers[2].bias:
/// ..." becomes "network.layers[2].bias: ...".
void checkNetwork(const std::string& network) {
  try {
    if (isNamedNetwork(network)) return checkNamedNetwork(network);
    networkFromJson(network);
  } catch (const InvalidArgument& error) {
    const std::string_view what = error.what();
    const auto head = what.substr(0, what.find(": "));
    if (head == "network") throw;
    const bool path = head.size() < what.size() && head.find(' ') == head.npos;
    throw InvalidArgument(fmt::format("network{}{}", path ? "." : ": ", what));
  }
}

}  // namespace

std::string strategyProblem(std::string_view what, const AnyStrategy& strategy) {
  for (const auto& option : optionsOf(strategy)) {
    for (const auto end : {" ", ":"})
      if (const auto at = what.find(fmt::format(": {}{}", option.name, end)); at != what.npos)
        return fmt::format("{}{}", kStrategyPath, what.substr(at + 2));
    if (const auto at = what.find(fmt::format("there is no {} \"", option.name)); at != what.npos)
      return fmt::format("{}{}: {}", kStrategyPath, option.name, what.substr(at));
  }
  return fmt::format("training.strategy: {}", what);
}

void checkNodes(const RunFile& run) {
  require(run.training.nodes != "elastic" || (!run.listeners.page && run.listeners.curves.empty()),
          "training.nodes: elastic, so listeners.page and listeners.curves must be left out: it is not known "
          "beforehand which process shows them");
}

void checkRun(const RunFile& run) {
  run.data.validate();
  checkNetwork(run.network);
  checkTraining(run.training);
  checkListeners(run.listeners);
  checkNodes(run);
  run.makeStrategy(1);
}

void checkComparison(const RunComparison& c) {
  for (auto seed = c.seeds.begin(); seed != c.seeds.end(); ++seed) {
    require(*seed == std::floor(*seed) && *seed >= 1 && *seed <= kMost,
            "compare.seeds: each must be a whole number between 1 and {}, got {}", kMost, *seed);
    require(std::find(c.seeds.begin(), seed, *seed) == seed, "compare.seeds: {} is given twice", *seed);
  }
  requireBetween("compare.testEvery", c.testEvery, 0, kMost);
  require(c.target < 100, "compare.target must be below 100: an accuracy in percent, or R2; got {}",
          c.target);
  if (!c.link.empty()) try {
      parseNetworkLink(c.link);
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(fmt::format("compare.{}", error.what()));
    }
}

void checkNewRun(const RunFile& run) {
  const auto requireFraction = [](std::string_view path, const RunMonitor& m, double least) {
    require(least < 1 || !isShare(m.monitor),
            "{}.minImprovement must be below 1, a difference of {} from 0 to 1, as in 0.002; got {}", path,
            nameOf(m.monitor), least);
  };
  const auto& early = run.listeners.earlyStopping;
  const auto& plateau = run.listeners.reduceOnPlateau;
  if (early) requireFraction("listeners.earlyStopping", early->monitored, early->minImprovement);
  if (plateau) requireFraction("listeners.reduceOnPlateau", plateau->monitored, plateau->minImprovement);
}

}  // namespace muster::detail
