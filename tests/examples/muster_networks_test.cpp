// The program muster: networks by name, and what plan and train refuse.
#include "muster/core/io/json_value.h"
#include "muster/core/io/safetensors.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/examples/convnet.h"
#include "tests/support/batch_of.h"

namespace muster {
TEST_CASE("plan refuses what train refuses, in the same words") {
  const test::ConvnetRun muster;
  for (const std::string options :
       {"training.workers=0", "training.devices=cuda:99", "training.mathMode=tf32",
        "training.resume=missing.safetensors", "training.model=missing/model.safetensors",
        "training.model=run.json", "training.strategy=adasum --set training.workers=3",
        "data.validationExamples=600", "network=resnet19", "network=charLstm", "listeners.earlyStopping=3",
        "listeners.earlyStopping.bestFile=model.safetensors --set data.validationExamples=20",
        "listeners.checkpoints=run.json"}) {
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
  muster.refuses("plan run.json --set network=resnet81", "muster: --set network=resnet81: network: there ");
  muster.refuses("plan run.json --set network=gpt", "muster: network: gpt is for texts, as indices [T] ");
  const auto shown = parseJson(muster.succeeds("example --network convnet").out).at("network");
  CHECK(shown.at("name") == "convnet");
  CHECK(shown.at("updater").at("type") == "nesterovs");
}

TEST_CASE("a text of indices trains charLstm and gpt, whose vocabulary is that of the text") {
  const test::ConvnetRun muster;
  for (const auto& [name, symbols] : {std::pair("text.safetensors", 7), {"less.safetensors", 5}}) {
    std::vector<std::int64_t> text;  // each symbol follows the one before
    for (int i = 0; i <= 12 * 6; ++i) text.push_back(i % symbols);
    Safetensors file;
    file.add("features", test::integers({text.begin(), text.end() - 1}, {12, 6}));
    file.add("labels", test::integers({text.begin() + 1, text.end()}, {12, 6}));
    writeSafetensors(muster.directory / name, file);
  }
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
