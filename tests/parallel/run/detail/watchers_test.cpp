#include "muster/parallel/run/detail/watchers.h"

#include <typeinfo>

#include "muster/core/data/in_memory.h"
#include "muster/core/listeners/reduce_on_plateau.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/fake_trainer.h"
#include "tests/support/test.h"

using namespace muster;
using namespace muster::detail;

namespace {

/// Data to train and to validate with: four examples of two numbers, in batches of two.
LoadedData fourExamples() {
  LoadedData data;
  for (auto* part : {&data.train, &data.validation})
    *part =
        std::make_unique<InMemoryDataSetIterator>(Tensor::zeros({4, 2}), Tensor::zeros({4}, DType::Int64), 2);
  return data;
}

const MultiLayerConfiguration kSmall{.inputShape = {2}, .layers = {Output{.classes = 2}}};

}  // namespace

TEST_CASE("a run has the listeners that it asks for, in the order in which they need each other") {
  MultiLayerNetwork network(kSmall);
  network.init();
  auto data = fourExamples();
  RunFile run;
  run.network = network.toJson();
  const auto has = [&](const RunListeners& listeners, const Shown& shown,
                       const std::vector<std::string_view>& own) {
    run.listeners = listeners;
    const auto watchers = watch(run, data, network, shown);
    std::vector<std::string_view> names{"PerformanceListener", "LastState", "MergeCount"};
    names.insert(names.end(), own.begin(), own.end());
    REQUIRE(watchers.all.size() == names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Listener& listener = *watchers.all[i];
      CHECK_CONTAINS(typeid(listener).name(), names[i]);
    }
    CHECK((watchers.tests != nullptr) == (listeners.testEvery + listeners.testIterations > 0));
    CHECK((watchers.stopping != nullptr) == listeners.earlyStopping.has_value());
  };
  has({.progress = false}, {}, {"EpochRecord"});
  has({}, {}, {"ProgressListener", "EpochRecord"});
  has({}, {.progress = false, .terminal = true}, {"EpochRecord"});
  has({.progress = false}, {.terminal = true}, {"WatchListener", "Workers", "EpochRecord"});
  has({.progress = false, .testIterations = 3}, {}, {"EvaluationListener", "EpochRecord"});
  has({.progress = false,
       .scoreEvery = 1,
       .testEvery = 1,
       .checkpoints = RunCheckpoints{.directory = "c"},
       .earlyStopping = RunEarlyStopping{},
       .reduceOnPlateau = RunPlateau{}},
      {},
      {"ScoreListener", "EvaluationListener", "EpochRecord", "ReduceOnPlateau", "CheckpointListener",
       "EarlyStopping"});
}

TEST_CASE("listeners have the options that the run gives them") {
  MultiLayerNetwork network(kSmall);
  network.init();
  auto data = fourExamples();
  RunFile run;
  run.network = network.toJson();
  run.listeners = {.progress = false,
                   .testEvery = 2,
                   .testIterations = 3,
                   .earlyStopping = RunEarlyStopping{.everyEpochs = 2,
                                                     .patience = 3,
                                                     .minImprovement = 0.25,
                                                     .maxMinutes = 0.5,
                                                     .restoreBest = false,
                                                     .bestFile = "b"},
                   .reduceOnPlateau = RunPlateau{
                       .factor = 0.5, .patience = 4, .minImprovement = 0.125, .minFactor = 0.0625}};
  const auto watchers = watch(run, data, network, {});
  CHECK(watchers.tests->describe() ==
        "EvaluationListener (everyEpochs=2, everyIterations=3, examples=4, batchSize=2)");
  CHECK(watchers.stopping->describe() ==
        "EarlyStopping (monitor=loss, mode=min, everyEpochs=2, patience=3, minImprovement=0.25, "
        "maxTime=30000000000 ns, restoreBest=false, examples=4, batchSize=2)");
  CHECK_CONTAINS(dynamic_cast<const ReduceOnPlateau&>(*watchers.all.at(5)).describe(),
                 "factor 0.5, above 0.125), patience=4, minFactor=0.0625)");
}

TEST_CASE("merges and their bytes are counted, and the state at the end is kept") {
  test::EchoModel model;
  test::FakeTrainer trainer(model);
  MergeCount count;
  for (const std::int64_t bytes : {3, 4}) count.onMerge({.trainer = trainer, .bytes = bytes});
  CHECK(count.merges == 2);
  CHECK(count.bytes == 7);
  LastState last;
  CHECK_FALSE(last.state);
  trainer.state.push_back({"a", Tensor::zeros({1})});
  last.onFitEnd(trainer);
  CHECK(last.state.value().front().name == "a");
}

TEST_CASE("fields of modules that this program was built without are refused by name") {
  const std::string page = pagesBuilt() ? "" : kNoPage,
                    tensorBoard = tensorBoardBuilt() ? "" : kNoTensorBoard;
  for (const auto& [listeners, field, why] :
       {std::tuple<RunListeners, std::string, std::string>{{.report = "r"}, "report", page},
        {{.tensorBoard = "t"}, "tensorBoard", tensorBoard},
        {{.page = true}, "page", page},
        {{.curves = "c"}, "curves", page}})
    CHECK_REFUSED(requireModules(listeners), why.empty() ? "" : "listeners." + field + ": " + why);
}

TEST_CASE("pages show the workers, the strategy, the batch and the seed of a run") {
  RunFile run{.data = {.batch = 7, .seed = 8},
              .network = {},
              .training = {.workers = 3, .strategy = "a", .strategyOptions = "b=1"},
              .listeners = {}};
  std::string text;
  for (const auto& [name, value] : hyperParameters(run))
    text += std::visit([&](const auto& v) { return fmt::format("{} {}, ", name, v); }, value);
  CHECK(text == "workers 3, strategy a, strategy options b=1, batch 7, seed 8, ");
}
