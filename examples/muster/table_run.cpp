#include "examples/muster/table_run.h"

#include <algorithm>

#include "examples/muster/run_data.h"
#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/layers.h"
#include "muster/datasets/table_description.h"

namespace program {
namespace {

using namespace muster;

constexpr std::int64_t kLeastHeldOut = 5;  // rows; fewer say nothing
constexpr std::int64_t kMostHeldOut = 2000;
constexpr std::int64_t kManyRows = 4000;  // from here on larger batches
// A training takes seconds: it ends after so many steps, or so many without an improvement.
constexpr std::int64_t kMostSteps = 80000, kPatientSteps = 12000;

Output outputOf(const InputDescription& described) {
  if (described.targets.empty()) return {.classes = std::ssize(described.classes), .init = Init::zero()};
  return {.units = 1, .loss = Loss::MeanSquaredError, .init = Init::zero()};
}

/// A small network for rows: a hidden layer, and beside it a direct path, by which it is a linear model; the
/// hidden layer learns what that leaves. The output starts at zero, so that a training which stops early has
/// no random weights in it. An l2 of 1 / rows is that of scikit-learn's LogisticRegression: a normal prior of
/// variance 1 for each weight.
/// @param rows  to train with.
ComputationGraphConfiguration networkFor(const InputDescription& described, std::int64_t rows) {
  ComputationGraphConfiguration graph{.seed = 123,
                                      .updater = Adam{.learningRate = 0.001},
                                      .l2 = 1.0 / static_cast<double>(rows),
                                      .inputs = {{.name = "row"}}};
  const auto scaled = graph.add("scaled", Normalise{}, {"row"});
  const auto hidden =
      graph.add("hidden", Dense{.units = 64, .activation = Activation::ReLU, .init = Init::he()}, {scaled});
  const auto some = graph.add("some", Dropout{.rate = 0.3}, {hidden});
  const auto both = graph.add("both", Merge{}, {scaled, some});
  graph.addOutput(graph.add("output", outputOf(described), {both}));
  return graph;
}

/// Rows held out of `rows`: three in twenty, or none if that is too few.
std::int64_t heldOut(std::int64_t rows, std::size_t classes) {
  const std::int64_t part = std::min(rows * 3 / 20, kMostHeldOut);
  return part < kLeastHeldOut || rows - part < static_cast<std::int64_t>(classes) ? 0 : part;
}

}  // namespace

RunFile tableRun(RunData data) {
  const auto table = readTable(data.train, formatOf(data));
  const auto rows = labelledRows(table, data.label, data.regression);
  require(rows.size() > 1, "{}: has one example, and a training needs two", data.train);
  const auto described = describeTable(table, tableOptionsOf(data), rows);
  require(data.regression || described.classes.size() > 1,
          "{}: has a single class, and a classification needs two; --label names the column of the labels, "
          "and --regression is for numbers to predict",
          data.train);
  for (const auto& [name, reason] : described.omitted) logInfo("column {} is left out: {}", name, reason);
  if (data.label.empty())
    logInfo("{}: the label is the last column, {}; --label names another one", data.train,
            table.names().back());
  const auto examples = std::ssize(rows);
  data.validationExamples = heldOut(examples, described.classes.size());
  const std::int64_t train = examples - data.validationExamples;
  data.batch = train < kManyRows ? std::clamp<std::int64_t>(train / 16, 1, 32) : 128;
  const std::int64_t steps = (train + data.batch - 1) / data.batch;

  RunFile run{.data = std::move(data),
              .network = networkFor(described, train).toJson(),
              .training = {.workers = 1,
                           .strategyOptions = "every=1",
                           .epochs = std::clamp<std::int64_t>(kMostSteps / steps, 20, 800)},
              .listeners = {}};
  if (run.data.validationExamples > 0) {
    run.listeners.testEvery = 10;
    run.listeners.earlyStopping =
        RunEarlyStopping{.monitored = {.monitor = Monitor::Loss, .mode = "min"},
                         .patience = std::clamp<std::int64_t>(kPatientSteps / steps, 10, 90)};
  }
  return run;
}

}  // namespace program
