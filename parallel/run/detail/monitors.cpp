#include "muster/parallel/run/detail/monitors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/io/json_fields.h"

namespace muster::detail {
namespace {

std::string noTests(std::string_view who) {
  return fmt::format("{} needs data to test with: data.validationExamples, or a test set", who);
}

std::string noValidation(std::string_view who) {
  return fmt::format(
      "{} chooses by examples that are neither trained on nor tested with: give data.validationExamples, a "
      "number of training examples to hold out, or the monitor trainingScore",
      who);
}

/// @throws InvalidArgument if listeners need examples that the run does not hold out, naming all of them, and
///         how to do without.
void requireExamples(const RunListeners& l, const LoadedData& data) {
  std::vector<std::pair<std::string, std::string>> lacking;  // field, and what turns it off
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
      sets += " " + off;
    }
    text += fmt::format("; so {} {}; without them:{}", lacking.size() == 2 ? "does" : "do", others, sets);
  }
  throw InvalidArgument(text);
}

}  // namespace

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

void checkMonitors(const RunFile& run, LoadedData& data, Network& network) {
  const auto check = [&](const RunMonitor& m, std::string_view who) {
    const auto monitored = monitoredOf(m, data, who);
    monitored.validate(who);
    const auto of = m.monitor == Monitor::R2    ? Task::Regression
                    : m.monitor == Monitor::Auc ? Task::Labels
                                                : network.task();
    require(network.task() == of, "{}: {} is measured of a {}, and this network is for {}; monitor its loss",
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

std::string unweightedLoss(const LoadedData& data) {
  const auto& weights = data.classWeights;
  if (std::ranges::adjacent_find(weights, std::ranges::not_equal_to{}) == weights.end()) return {};
  return "the loss of the validation data without class weights, which favours frequent classes";
}

std::string weightsRemark(const RunListeners& l, const LoadedData& data) {
  const auto loss = unweightedLoss(data);
  if (loss.empty()) return {};
  std::vector<std::string> fields;
  const auto look = [&](const RunMonitor* monitor, const char* field) {
    if (monitor && monitor->monitor == Monitor::Loss) fields.emplace_back(field);
  };
  look(l.earlyStopping ? &l.earlyStopping->monitored : nullptr, "listeners.earlyStopping");
  look(l.checkpoints && l.checkpoints->best ? &*l.checkpoints->best : nullptr, "listeners.checkpoints.best");
  look(l.reduceOnPlateau ? &l.reduceOnPlateau->monitored : nullptr, "listeners.reduceOnPlateau");
  if (fields.empty()) return {};
  const bool one = fields.size() == 1;
  std::string sets;
  for (const auto& field : fields) sets += fmt::format("{}{}.monitor=f1", sets.empty() ? "" : " ", field);
  return fmt::format("{} {} at {}; {} {} each class alike", fmt::join(fields, ", "), one ? "looks" : "look",
                     loss, sets, one ? "counts" : "count");
}

}  // namespace muster::detail
