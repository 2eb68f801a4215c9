// The program muster: networks by name, and what plan and train refuse.
#include <fmt/ranges.h>

#include <algorithm>

#include "muster/core/base/text_table.h"
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
    muster.refuses("predict text.json", "this network has an output at each step: ");
  }
}

TEST_CASE("predictions of tensors have the labels that a test counts: their classes, none of weight 0") {
  const test::ConvnetRun muster;
  const auto predicts = [&](const Tensor& labels, const std::string& network) {
    Safetensors file;
    Tensor features = Tensor::zeros({6, 2});
    for (std::int64_t i = 0; i < 6; ++i) features.at(i, 0) = 0.1f * static_cast<float>(i);
    file.add("features", features);
    file.add("labels", labels);
    file.add("labelsMask", Tensor::of({1, 0, 1, 1, 1, 0.5}, {6}));
    writeSafetensors(muster.directory / "rows.safetensors", file);
    muster.write("rows.json", R"({"format": "muster-run/1", "network": )" + network + R"(,
        "data": {"type": "safetensors", "train": "rows.safetensors", "batch": 4},
        "training": {"pinThreads": false, "devices": "cpu"}})");
    muster.succeeds("train rows.json");
    const auto lines = test::linesOf(muster.succeeds("predict rows.json --on train").out);
    const auto columns = std::ranges::count_if(csvFields(lines.at(0)),
                                               [](const auto& name) { return name.starts_with("label"); });
    std::vector<std::string> rows;
    for (const auto& line : lines) {
      const auto cells = csvFields(line);
      rows.push_back(fmt::format("{}", fmt::join(cells.begin() + 1, cells.begin() + 1 + columns, ",")));
    }
    return fmt::format("{}", fmt::join(rows, " "));
  };
  const auto output = [](const std::string& fields) {
    return R"({"format": "muster.MultiLayerConfiguration", "version": 1,
               "layers": [{"type": "output", )" + fields + "}]}";
  };
  CHECK(predicts(test::integers({2, -1, 0, 1, 1, 2}), "\"mlp\"") == "label 2  0 1 1 2");
  CHECK(predicts(Tensor::of({0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1}, {6, 3}), "\"mlp\"") ==
        "label 2  0 1 1 2");
  CHECK(predicts(Tensor::of({0.5, 0.5, 9, 9, 1, 0, 0, 1, 0, 1, 1, 0}, {6, 2}), output("\"classes\": 2")) ==
        "label   0 1 1 0");
  CHECK(predicts(Tensor::of({1, 0, 0, 1, 1, 0}, {6}), output(R"("units": 1, "loss": "bce")")) ==
        "label 1  0 1 1 0");
  CHECK(predicts(Tensor::of({1, 5, 0, 1, 1, 2}, {6}), output(R"("units": 1, "loss": "mse")")) ==
        "label 1  0 1 1 2");
  CHECK(predicts(Tensor::of({1, 0, 5, 5, 0, 0, 1, 1, 1, 0, 0, 1}, {6, 2}),
                 output(R"("units": 2, "loss": "bce")")) == "label of 0,label of 1 1,0 , 0,0 1,1 1,0 0,1");
}

TEST_CASE("if the test after a training fails, the error says where the trained network is") {
  const test::ConvnetRun muster;
  Safetensors file;
  file.add("features", Tensor::zeros({4, 2}));
  file.add("labels", Tensor::of({0.5, 0.5, 1, 0, 0, 1, 1, 0}, {4, 2}));  // shares, which no test counts
  writeSafetensors(muster.directory / "rows.safetensors", file);
  muster.write("rows.json", R"({"format": "muster-run/1",
      "network": {"format": "muster.MultiLayerConfiguration", "version": 1,
                  "layers": [{"type": "output", "classes": 2}]},
      "data": {"type": "safetensors", "train": "rows.safetensors", "test": "rows.safetensors"},
      "training": {"pinThreads": false, "devices": "cpu"}, "listeners": {"progress": false}})");
  const auto trained = muster("train rows.json");
  CHECK(trained.exit != 0);
  CHECK_CONTAINS(trained.err, "is not one-hot; the trained network is saved: model.safetensors\n");
  CHECK(muster.has("model.safetensors"));
}

}  // namespace muster
