// The program muster: networks by name, and what plan and train refuse.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "muster/core/io/json_value.h"
#include "muster/core/io/safetensors.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/examples/convnet.h"

namespace muster {
namespace {

/// Texts of `symbols` symbols, in which each follows the one before.
void writeTexts(const std::filesystem::path& path, std::int64_t symbols) {
  Tensor features = Tensor::empty({12, 6}, DType::Int64), labels = Tensor::empty({12, 6}, DType::Int64);
  for (std::int64_t i = 0; i < 12 * 6; ++i) {
    features.data<std::int64_t>()[i] = i % symbols;
    labels.data<std::int64_t>()[i] = (i + 1) % symbols;
  }
  Safetensors file;
  file.add("features", features);
  file.add("labels", labels);
  writeSafetensors(path, file);
}

}  // namespace

TEST_CASE("plan refuses what train refuses, in the same words") {
  const test::ConvnetRun muster;
  for (const std::string options :
       {"training.workers=0", "training.strategy=diloc", "training.devices=cuda:99", "training.mathMode=tf32",
        "training.resume=missing.safetensors", "training.initialModel=missing.safetensors",
        "training.model=missing/model.safetensors", "training.model=run.json",
        "training.strategy=adasum --set training.workers=3", "data.validationExamples=600",
        "data.classWeights=1,1", "network=resnet19", "network=charLstm", "listeners.earlyStopping=3",
        "listeners.earlyStopping.monitor=r2 --set data.validationExamples=20",
        "listeners.earlyStopping.bestFile=model.safetensors --set data.validationExamples=20",
        "listeners.checkpoints=run.json", "listeners.testEvery=1 --set data.testExamples=-1"}) {
    CAPTURE(options);
    const auto planned = muster("plan run.json --set " + options),
               trained = muster("train run.json --set " + options);
    CHECK(trained.exit != 0);
    CHECK(planned.exit == trained.exit);
    CHECK(planned.err == trained.err);
  }
  muster.succeeds("plan run.json");
}

TEST_CASE("a network by its name takes its shapes from the data, and its model has the whole configuration") {
  const test::ConvnetRun muster;
  const auto rows = MultiLayerConfiguration::fromJson(
      muster
          .succeeds("summary run.json --json --set network=mlp --set network.hidden=[30,20]"
                    " --set network.updater=sgd")
          .out);
  CHECK(rows.updater.type() == "sgd");
  CHECK(rows.layers.size() == 3);

  const std::string named =
      " run.json --set network=resnet18 --set network.width=2 --set data.trainExamples=60 --set "
      "data.batch=10";
  muster.succeeds("train" + named);
  const auto network = Network::load(muster.directory / "model.safetensors");
  CHECK(network->outputShapes().back().second == Shape{10});
  muster.succeeds("evaluate" + named);
  CHECK_CONTAINS(muster.succeeds("plan" + named).out, "plan: 2 workers");

  muster.refuses("plan run.json --set network=resnet81",
                 "muster: --set network=resnet81: network: there is no network \"resnet81\"; the nearest is "
                 "resnet18, of mlp, convnet, resnet18, charLstm, gpt\n");
  muster.refuses(
      "plan run.json --set network=gpt",
      "muster: network: gpt is for texts, as indices [T] with a label at each step, and an example "
      "is [1, 28, 28]\n");
  const auto shown = parseJson(muster.succeeds("example --network convnet").out).at("network");
  CHECK(shown.at("name") == "convnet");
  CHECK(shown.at("updater").at("type") == "nesterovs");
}

TEST_CASE("a text of indices trains charLstm and gpt, whose vocabulary is that of the text") {
  const test::ConvnetRun muster;
  writeTexts(muster.directory / "text.safetensors", 7);
  writeTexts(muster.directory / "less.safetensors", 5);
  for (const std::string name : {"charLstm", "gpt"}) {
    muster.write("text.json", fmt::format(R"({{"format": "muster-run/1",
        "data": {{"type": "safetensors", "train": "text.safetensors", "test": "less.safetensors", "batch": 4}},
        "network": {{"name": "{}", "layers": 1}},
        "training": {{"epochs": 2, "pinThreads": false, "devices": "cpu"}}}})",
                                          name));
    muster.succeeds("train text.json");
    CHECK(Network::load(muster.directory / "model.safetensors")->outputShapes().back().second == Shape{6, 7});
    muster.succeeds("evaluate text.json");
  }
}

}  // namespace muster
