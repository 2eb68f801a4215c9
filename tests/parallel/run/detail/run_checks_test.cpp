#include "muster/parallel/run/detail/run_checks.h"

#include "muster/parallel/run/detail/saved_run.h"
#include "tests/support/test.h"

using namespace muster;
using namespace muster::detail;

namespace {

RunFile runWith(const RunTraining& training, const RunListeners& listeners = {}) {
  return {.data = {.type = "mixtures"}, .network = R"("mlp")", .training = training, .listeners = listeners};
}

}  // namespace

TEST_CASE("a field of the training out of range, or that contradicts another, is refused by name") {
  const auto refused = [](const RunTraining& training, const std::string& text) {
    CHECK_REFUSED(checkRun(runWith(training)), text.empty() ? "" : "training." + text);
  };
  refused({}, "");
  refused({.workers = 1025}, "workers must be between 1 and 1024, got 1025");
  refused({.epochs = 0}, "epochs must be between 1 and 1073741824, got 0");
  refused({.prefetch = -1}, "prefetch must be between 0 and 1048576, got -1");
  refused({.threadsPerWorker = 0}, "threadsPerWorker must be between 1 and 1024, got 0");
  refused({.devices = "gpu"}, "devices gpu: device: expected cpu, cuda or cuda:N, got \"gpu\"");
  refused({.groups = 0}, "groups must be between 1 and 1024, got 0");
  refused({.nodes = "many"}, "nodes must be auto, none, mpi, gloo or elastic, got many");
  refused({.initialModel = "m", .resume = "m"},
          "initialModel and training.resume: a training begins with one of them");
  refused({.model = ""}, "model: the trained model needs the name of a file");
}

TEST_CASE("a field of the listeners out of range, or that contradicts another, is refused by name") {
  const auto refused = [](const RunListeners& listeners, const std::string& text) {
    CHECK_REFUSED(checkRun(runWith({}, listeners)), text.empty() ? "" : "listeners." + text);
  };
  refused({.page = true, .pagePort = 70000}, "pagePort must be between 0 and 65535, got 70000");
  refused({.pagePort = 8080}, "pagePort needs listeners.page");
  refused({.curves = "a.json"},
          "curves must be a name that ends in .curves.jsonl, by which muster page finds it; got a.json");
  refused({.group = "a"}, "group needs listeners.curves");

  const auto saving = [&](RunCheckpoints checkpoints, const std::string& text) {
    checkpoints.directory = "c";
    refused({.checkpoints = checkpoints}, text.empty() ? "" : "checkpoints." + text);
  };
  refused({.checkpoints = RunCheckpoints{}}, "checkpoints.directory: is missing");
  saving({.everyMinutes = 1e300}, "everyMinutes must be between 0 and 100000000, got 1e+300");
  saving({.everyEpochs = 0, .everyMinutes = 1e-12},
         "everyEpochs, everyIterations and everyMinutes are 0, so nothing would be saved");
  saving({.everyEpochs = 0, .everyMinutes = 1e-10}, "");  // nanoseconds
  saving({.keepEveryEpochs = 2}, "keepEveryEpochs 2 has no effect with keepLast 0, which keeps all");
  saving({.best = RunMonitor{.monitor = Monitor::Own}},
         "best.monitor: own is for programs; there are accuracy, loss, r2, auc, f1, trainingScore");
  saving({.best = RunMonitor{.mode = "most"}}, "best.mode must be min or max, or left out; got \"most\"");
  saving({.best = RunMonitor{.monitor = Monitor::Auc, .mode = "min"}},
         "best.mode min contradicts listeners.checkpoints.best.monitor auc, of which a larger one is better");

  const std::string nothing =
      "earlyStopping.patience and maxMinutes are both 0, and neither restoreBest nor bestFile keeps the best "
      "state, so it would do nothing";
  refused({.earlyStopping = RunEarlyStopping{.maxMinutes = -1}},
          "earlyStopping.maxMinutes must be between 0 and 100000000, got -1");
  for (const double minutes : {0.0, 1e-12})
    refused({.earlyStopping = RunEarlyStopping{.patience = 0, .maxMinutes = minutes, .restoreBest = false}},
            nothing);
  refused({.earlyStopping = RunEarlyStopping{.patience = 0}}, "");
  refused({.reduceOnPlateau = RunPlateau{.factor = 1}},
          "reduceOnPlateau.factor must be between 0 and 1, got 1");
  refused({.reduceOnPlateau = RunPlateau{.minFactor = 1}},
          "reduceOnPlateau.minFactor must be from 0 to below 1, got 1");
}

TEST_CASE("elastic nodes have no page and no curves") {
  CHECK_NOTHROW(checkNodes(runWith({}, {.page = true})));
  CHECK_NOTHROW(checkNodes(runWith({.nodes = "elastic"})));
  for (const auto& listeners : {RunListeners{.page = true}, RunListeners{.curves = "a.curves.jsonl"}})
    CHECK_THROWS_AS(checkNodes(runWith({.nodes = "elastic"}, listeners)), InvalidArgument);
}

TEST_CASE(
    "an improvement of an accuracy by 1 is refused of a new run, and read in a file of an earlier one") {
  const auto refused = [](const RunListeners& listeners, const std::string& problem) {
    const auto run = runWith({}, listeners);
    const auto text = problem.empty() ? problem : "listeners." + problem + " from 0 to 1, as in 0.002; got 1";
    CHECK_REFUSED(checkNewRun(run), text);
    CHECK_REFUSED(RunFile::parse(run.toJson()), text);
    CHECK(savedRun(run.toJson()).listeners.earlyStopping.has_value() == listeners.earlyStopping.has_value());
  };
  const auto stops = [](Monitor by) {
    return RunListeners{.earlyStopping = RunEarlyStopping{.monitored = {.monitor = by}, .minImprovement = 1}};
  };
  refused(stops(Monitor::Loss), "");
  const std::string below = "minImprovement must be below 1, a difference of ";
  refused(stops(Monitor::Accuracy), "earlyStopping." + below + "accuracy");
  refused(stops(Monitor::F1), "earlyStopping." + below + "f1");
  refused({.reduceOnPlateau = RunPlateau{.monitored = {.monitor = Monitor::Auc}, .minImprovement = 1}},
          "reduceOnPlateau." + below + "auc");
}
