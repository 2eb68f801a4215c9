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
  const std::pair<RunTraining, std::string> cases[] = {
      {{}, ""},
      {{.workers = 1025}, "workers must be between 1 and 1024, got 1025"},
      {{.epochs = 0}, "epochs must be between 1 and 1073741824, got 0"},
      {{.prefetch = -1}, "prefetch must be between 0 and 1048576, got -1"},
      {{.threadsPerWorker = 0}, "threadsPerWorker must be between 1 and 1024, got 0"},
      {{.devices = "gpu"}, "devices gpu: device: expected cpu, cuda or cuda:N, got \"gpu\""},
      {{.groups = 0}, "groups must be between 1 and 1024, got 0"},
      {{.nodes = "many"}, "nodes must be auto, none, mpi, gloo or elastic, got many"},
      {{.initialModel = "m", .resume = "m"},
       "initialModel and training.resume: a training begins with one of them"},
      {{.model = ""}, "model: the trained model needs the name of a file"},
  };
  for (const auto& [training, text] : cases)
    CHECK_REFUSED(checkRun(runWith(training)), text.empty() ? "" : "training." + text);
}

TEST_CASE("a field of the listeners out of range, or that contradicts another, is refused by name") {
  const auto best = [](RunMonitor monitor) { return RunCheckpoints{.directory = "c", .best = monitor}; };
  const std::pair<RunListeners, std::string> cases[] = {
      {{.page = true, .pagePort = 70000}, "pagePort must be between 0 and 65535, got 70000"},
      {{.pagePort = 8080}, "pagePort needs listeners.page"},
      {{.curves = "a.json"},
       "curves must be a name that ends in .curves.jsonl, by which muster page finds it; got a.json"},
      {{.group = "a"}, "group needs listeners.curves"},
      {{.checkpoints = RunCheckpoints{}}, "checkpoints.directory: is missing"},
      {{.checkpoints = RunCheckpoints{.directory = "c", .everyMinutes = 1e300}},
       "checkpoints.everyMinutes must be between 0 and 100000000, got 1e+300"},
      {{.checkpoints = RunCheckpoints{.directory = "c", .everyEpochs = 0, .everyMinutes = 1e-12}},
       "checkpoints.everyEpochs, everyIterations and everyMinutes are 0, so nothing would be saved"},
      {{.checkpoints = RunCheckpoints{.directory = "c", .keepEveryEpochs = 2}},
       "checkpoints.keepEveryEpochs 2 has no effect with keepLast 0, which keeps all"},
      {{.checkpoints = best({.monitor = Monitor::Own})},
       "checkpoints.best.monitor: own is for programs; there are accuracy, loss, r2, auc, f1, trainingScore"},
      {{.checkpoints = best({.mode = "most"})},
       "checkpoints.best.mode must be min or max, or left out; got \"most\""},
      {{.checkpoints = best({.monitor = Monitor::Auc, .mode = "min"})},
       "checkpoints.best.mode min contradicts listeners.checkpoints.best.monitor auc, of which a larger one "
       "is better"},
      {{.earlyStopping = RunEarlyStopping{.maxMinutes = -1}},
       "earlyStopping.maxMinutes must be between 0 and 100000000, got -1"},
      {{.earlyStopping = RunEarlyStopping{.patience = 0, .restoreBest = false}},
       "earlyStopping.patience and maxMinutes are both 0, and neither restoreBest nor bestFile keeps the "
       "best "
       "state, so it would do nothing"},
      {{.earlyStopping = RunEarlyStopping{.patience = 0, .maxMinutes = 1e-12, .restoreBest = false}},
       "earlyStopping.patience and maxMinutes are both 0, and neither restoreBest nor bestFile keeps the "
       "best state, so it would do nothing"},
      {{.reduceOnPlateau = RunPlateau{.factor = 1}}, "reduceOnPlateau.factor must be between 0 and 1, got 1"},
      {{.reduceOnPlateau = RunPlateau{.minFactor = 1}},
       "reduceOnPlateau.minFactor must be from 0 to below 1, got 1"},
  };
  for (const auto& [listeners, text] : cases)
    CHECK_REFUSED(checkRun(runWith({}, listeners)), "listeners." + text);
  CHECK_NOTHROW(checkRun(runWith({}, {.earlyStopping = RunEarlyStopping{.patience = 0}})));
  const RunCheckpoints nanoseconds{.directory = "c", .everyEpochs = 0, .everyMinutes = 1e-10};
  CHECK_NOTHROW(checkRun(runWith({}, {.checkpoints = nanoseconds})));
}

TEST_CASE("elastic nodes have no page and no curves") {
  CHECK_NOTHROW(checkNodes(runWith({}, {.page = true})));
  CHECK_NOTHROW(checkNodes(runWith({.nodes = "elastic"})));
  for (const auto& listeners : {RunListeners{.page = true}, RunListeners{.curves = "a.curves.jsonl"}})
    CHECK_THROWS_AS(checkNodes(runWith({.nodes = "elastic"}, listeners)), InvalidArgument);
}

TEST_CASE(
    "an improvement of an accuracy by 1 is refused of a new run, and read in a file of an earlier one") {
  const auto stops = [](Monitor by) {
    return runWith({},
                   {.earlyStopping = RunEarlyStopping{.monitored = {.monitor = by}, .minImprovement = 1}});
  };
  const auto lowers = runWith(
      {}, {.reduceOnPlateau = RunPlateau{.monitored = {.monitor = Monitor::Auc}, .minImprovement = 1}});
  CHECK_NOTHROW(checkNewRun(stops(Monitor::Loss)));
  for (const auto& [run, field] :
       {std::pair(stops(Monitor::Accuracy),
                  "earlyStopping.minImprovement must be below 1, a difference of accuracy "),
        {stops(Monitor::F1), "earlyStopping.minImprovement must be below 1, a difference of f1 "},
        {lowers, "reduceOnPlateau.minImprovement must be below 1, a difference of auc "}}) {
    const auto text = fmt::format("listeners.{}from 0 to 1, as in 0.002; got 1", field);
    CHECK_REFUSED(checkNewRun(run), text);
    CHECK_REFUSED(RunFile::parse(run.toJson()), text);
    CHECK(savedRun(run.toJson()).listeners.earlyStopping.has_value() ==
          run.listeners.earlyStopping.has_value());
  }
}
