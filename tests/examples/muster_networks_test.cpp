// The program muster: networks by name, and what plan and train refuse.
#include <doctest/doctest.h>

#include <boost/json.hpp>

#include "muster/core/io/safetensors.h"
#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/examples/sandbox.h"

namespace muster {
namespace {

using test::contains;
namespace json = boost::json;

/// The program in a directory with `run.json`: 60 generated digits.
class Muster : public test::Sandbox {
 public:
  Muster() : Sandbox(MUSTER_PROGRAM) { test::writeFile(directory / "run.json", run({"example"}).out); }

  test::Outcome small(const std::string& command, const std::vector<std::string>& sets = {}) const {
    std::vector<std::string> arguments{command, "run.json"};
    for (const char* const set : {"data.trainExamples=60", "data.testExamples=20", "data.batch=10",
                                  "training.epochs=1", "training.pinThreads=false", "training.devices=cpu"})
      arguments.insert(arguments.end(), {"--set", set});
    for (const auto& set : sets) arguments.insert(arguments.end(), {"--set", set});
    return run(arguments);
  }
};

/// Texts of `symbols` symbols, in which each follows the one before.
Safetensors textOf(std::int64_t symbols) {
  Tensor features = Tensor::empty({12, 6}, DType::Int64), labels = Tensor::empty({12, 6}, DType::Int64);
  for (std::int64_t i = 0; i < 12 * 6; ++i) {
    features.data<std::int64_t>()[i] = i % symbols;
    labels.data<std::int64_t>()[i] = (i + 1) % symbols;
  }
  Safetensors file;
  file.add("features", features);
  file.add("labels", labels);
  return file;
}

}  // namespace

TEST_CASE("plan refuses what train refuses, in the same words") {
  const Muster muster;
  for (const std::vector<std::string>& sets : std::vector<std::vector<std::string>>{
           {"training.workers=0"},
           {"training.strategy=diloc"},
           {"training.devices=cuda:99"},
           {"training.mathMode=tf32"},
           {"training.resume=missing.safetensors"},
           {"training.initialModel=missing.safetensors"},
           {"training.model=missing/model.safetensors"},
           {"training.model=run.json"},
           {"training.strategy=adasum", "training.workers=3"},
           {"data.validationExamples=60"},
           {"network.layers[5].classes=9"},
           {"network=resnet19"},
           {"network=charLstm"},
           {"listeners.earlyStopping=3"},
           {"listeners.earlyStopping.monitor=r2", "data.validationExamples=20"},
           {"listeners.earlyStopping.bestFile=model.safetensors", "data.validationExamples=20"},
           {"listeners.checkpoints=run.json"},
           {"listeners.testEvery=1", "data.testExamples=-1"}}) {
    const auto planned = muster.small("plan", sets), trained = muster.small("train", sets);
    CAPTURE(sets.front());
    CHECK(trained.exit != 0);
    CHECK(planned.exit == trained.exit);
    CHECK(planned.err == trained.err);
  }
  CHECK(muster.small("plan").exit == 0);
}

TEST_CASE("nothing is chosen by the test set: held-out examples or the training's own score are needed") {
  const Muster muster;
  for (const std::string who :
       {"listeners.earlyStopping", "listeners.reduceOnPlateau", "listeners.checkpoints.best"}) {
    const std::vector<std::string> asked{"listeners.checkpoints.directory=c", who + ".monitor=loss"};
    CHECK(test::errorOf(muster.small("train", asked)) ==
          "muster: " + who +
              " chooses by examples that are neither trained on nor tested with: give "
              "data.validationExamples, a number of training examples to hold out, or the "
              "monitor trainingScore\n");
    auto held = asked, own = asked;
    held.push_back("data.validationExamples=20");
    own.push_back(who + ".monitor=trainingScore");
    CHECK(muster.small("plan", held).exit == 0);
    CHECK(muster.small("plan", own).exit == 0);
  }
  CHECK(muster.small("plan", {"listeners.testEvery=1"}).exit == 0);  // only looks
}

TEST_CASE("a network by its name takes its shapes from the data, and its model has the whole configuration") {
  const Muster muster;
  const auto configuration = [&](const std::vector<std::string>& sets) {
    auto arguments = std::vector<std::string>{"summary", "run.json", "--json"};
    for (const auto& set : sets) arguments.insert(arguments.end(), {"--set", set});
    const auto outcome = test::succeeded(muster.run(arguments));
    return outcome.out;
  };
  const auto rows = MultiLayerConfiguration::fromJson(configuration(
      {"network=mlp", "network.hidden=[30,20]", "network.updater=sgd", "data.trainExamples=60"}));
  CHECK(rows.updater.type() == "sgd");
  MultiLayerNetwork perceptron(rows);
  CHECK(perceptron.configuration().layers.size() == 3);

  const std::vector<std::string> named{"network=resnet18", "network.width=2"};
  test::succeeded(muster.small("train", named));
  const auto network = ComputationGraph::load(muster.directory / "model.safetensors");
  CHECK(network->outputShapes().back().second == Shape{10});
  // 3x3 convolutions of 2, 4, 8, 16 channels, 1x1 shortcuts, two numbers a channel of each normalisation.
  std::int64_t weights = 9 * 1 * 2 + 2 * 2 + 16 * 10 + 10;
  for (const std::int64_t c : {2, 4, 8, 16}) {
    const std::int64_t before = c == 2 ? 2 : c / 2;
    weights += 9 * before * c + 3 * 9 * c * c + 4 * 2 * c + (c == 2 ? 0 : before * c + 2 * c);
  }
  CHECK(network->parameterCount() == weights);
  CHECK(muster.small("evaluate", named).exit == 0);
  CHECK(contains(muster.small("plan", named).out, "plan: 2 workers"));

  const auto unknown = muster.small("plan", {"network=resnet81"});
  CHECK(unknown.err ==
        "muster: --set network=resnet81: network: there is no network \"resnet81\"; the nearest is resnet18, "
        "of mlp, "
        "convnet, "
        "resnet18, charLstm, gpt\n");
  CHECK(muster.small("plan", {"network=gpt"}).err ==
        "muster: network: gpt is for texts, as indices [T] with a label at each step, and an example is [1, "
        "28, 28]\n");
  CHECK(contains(muster.small("plan", {"network=mlp", "network.hiden=[3]"}).err,
                 "network.hiden: there is no such field; the nearest is hidden"));
  const auto shown = json::parse(muster.run({"example", "--network", "convnet"}).out).at("network");
  CHECK(shown.at("name") == "convnet");
  CHECK(shown.at("updater").at("type") == "nesterovs");
}

TEST_CASE("a text of indices trains charLstm and gpt, whose vocabulary is that of the text") {
  const Muster muster;
  writeSafetensors(muster.directory / "text.safetensors", textOf(7));
  writeSafetensors(muster.directory / "less.safetensors", textOf(5));
  for (const std::string name : {"charLstm", "gpt"}) {
    const json::object run{
        {"format", "muster-run/1"},
        {"data", json::object{{"type", "safetensors"},
                              {"train", "text.safetensors"},
                              {"test", "less.safetensors"},
                              {"batch", 4}}},
        {"network", json::object{{"name", name}, {"layers", 1}}},
        {"training", json::object{{"epochs", 2}, {"pinThreads", false}, {"devices", "cpu"}}}};
    test::writeFile(muster.directory / "text.json", json::serialize(run));
    test::succeeded(muster.run({"train", "text.json"}));
    const auto network = Network::load(muster.directory / "model.safetensors");
    CHECK(network->outputShapes().back().second == Shape{6, 7});
    CHECK(muster.run({"evaluate", "text.json"}).exit == 0);
  }
}

TEST_CASE("summary says what a model of Deeplearning4j needs") {
  const Muster muster;
  test::writeFile(muster.directory / "model.zip", "PK");
  CHECK(muster.run({"summary", "model.zip"}).err ==
        "muster: model.zip: a zip file, such as a model of Deeplearning4j: muster convert model.zip --out "
        "model.safetensors makes a model of it\n");
}

}  // namespace muster
