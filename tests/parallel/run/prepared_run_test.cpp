// Runs that are checked, with their data and network, before anything is trained.
#include "muster/parallel/run/prepared_run.h"

#include "muster/parallel/run/detail/preparation.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using test::thrown;
using Sets = std::vector<std::string>;

/// 40 pictures in four classes for a network of one layer, with these fields set.
PreparedRun prepared(const Sets& sets) {
  return prepareRun(RunFile::parse(R"({"format": "muster-run/1",
      "data": {"type": "mixtures", "trainExamples": 40, "testExamples": 20, "batch": 8},
      "network": {"format": "muster.MultiLayerConfiguration", "version": 1,
                  "layers": [{"type": "output", "classes": 4}]},
      "training": {"devices": "cpu"}})",
                                   sets));
}

/// Why such a run is refused.
std::string refusal(const Sets& sets) {
  return thrown<Error>([&] { prepared(sets); });
}

TEST_CASE("what does not fit the data is refused before the training, with both numbers") {
  CHECK(refusal({}) == "");
  for (const auto& [sets, problem] : {
           std::pair<Sets, std::string>{{"data.validationExamples=40"},
                                        "data.validationExamples is 40, and there are 40 examples"},
           {{"data.classWeights=1,1"}, "data.classWeights: there are 2 weights for 4 classes"},
           {{"data.dropLast=true", "data.batch=60"},
            "data.dropLast leaves out a batch that is not full, and data.batch 60 is larger than the 40 "
            "examples to train with, so none is left"},
           {{"network.layers[0].classes=3"}, "network and data do not fit: "},
           {{R"(network.layers=[{"type": "conv2d", "outChannels": 1, "kernel": [9, 9]},
                            {"type": "output", "classes": 4}])"},
            "kernel"},
       }) {
    CAPTURE(sets.front());
    CHECK_CONTAINS(refusal(sets), problem);
  }
}

TEST_CASE("a strategy that cannot merge the workers is refused by its field") {
  const auto refused = [](const Sets& sets) {
    const auto p = prepared(sets);
    return thrown<InvalidArgument>(
        [&] { detail::makeWrapper(p.run, p.devices, p.nodes, *p.network, {}, /*elastic=*/0); });
  };
  CHECK(refused(
            {"training.workers=3", "training.strategy=hierarchical", "training.strategy.levels=2:2,4:all"}) ==
        "training.strategy: hierarchical averaging: groups of 2 do not divide the 3 workers");
  CHECK(refused({"training.workers=2", "training.strategy=asynchronous", "training.strategy.speeds=1,2,3"}) ==
        "training.strategy.speeds must name one for each of 2 workers, got 3");
  CHECK(refused({"training.workers=3", "training.groups=2"}) == "training.groups: 2 do not divide 3 workers");
}

TEST_CASE("nothing is chosen by the test set: held-out examples or the training's own score are needed") {
  for (const std::string who :
       {"listeners.earlyStopping", "listeners.reduceOnPlateau", "listeners.checkpoints.best"}) {
    const std::string directory = "listeners.checkpoints.directory=c", byLoss = who + ".monitor=loss";
    CHECK(
        refusal({directory, byLoss}).starts_with(who + " chooses by examples that are neither trained on "));
    CHECK(refusal({directory, byLoss, "data.validationExamples=20"}) == "");
    CHECK(refusal({directory, who + ".monitor=trainingScore"}) == "");
  }
  CHECK(refusal({"listeners.testEvery=1"}) == "");  // only looks
}

TEST_CASE("a model or a checkpoint of a name that the system does not allow is refused") {
  const std::string name(1000, 'a');
  for (const std::string field : {"training.resume", "training.initialModel"})
    CHECK(refusal({field + "=" + name}) == name + ": cannot be read: File name too long");
}

}  // namespace
}  // namespace muster
