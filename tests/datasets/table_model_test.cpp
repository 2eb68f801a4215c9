#include "muster/datasets/table_model.h"

#include "muster/core/eval/evaluation.h"
#include "muster/core/eval/non_finite_prediction.h"
#include "muster/core/eval/regression_evaluation.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/datasets/table_description.h"
#include "muster/datasets/table_examples.h"
#include "tests/support/log_lines.h"
#include "tests/support/test.h"

using namespace muster;

namespace {

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a model file alone predicts and tests new rows, in any order of columns") {
  const test::TemporaryDirectory directory;
  const auto path = directory / "m.safetensors";
  std::string text = "size,colour,id,kind\n";
  for (int i = 0; i < 60; ++i)
    text += fmt::format("{},{},{},{}\n", i % 7 == 0 ? "" : fmt::format("{}", 1000 + i % 5),
                        i % 2 == 0 ? "red" : "blue", i + 1, i % 2 == 0 ? "cat" : "dog");
  const auto table = parseTable(text, {}, "train.csv");
  const auto [train, heldOut] = splitTable(table, {}, 50, 1);
  const auto description = describeTable(table, {}, train);
  CHECK(description.omitted == std::vector<OmittedColumn>{{"id", "its whole numbers count the rows"}});
  MultiLayerNetwork network(
      {.seed = 1, .updater = Adam{.learningRate = 0.05}, .layers = {Normalise{}, Output{.classes = 2}}});
  auto rows = tableIterator(description, table, train, 10, 1);
  network.fit(rows, 20);
  network.setInputDescription(description);
  network.save(path);

  auto model = TableModel::load(path);
  const auto fresh = [](std::string_view cells) { return parseTable(cells, {}, "new.csv"); };
  const auto predicted = model.predict(fresh("colour,more,size\nred,x,1002\nblue,y,\n"));
  CHECK(predicted.classes == Names{"cat", "dog"});
  CHECK(predicted.names == Names{"cat", "dog"});
  const test::LogLines log;
  model.predict(fresh("colour,size\nRed,1\ngold,2\nRed,3\nred,4\n,5\n"));
  CHECK(log.all() == Names{"column colour: 3 rows have words for which the model has no feature: \"Red\" "
                           "(known is \"red\"), \"gold\""});
  CHECK(test::thrown<FileError>([&] { model.predict(fresh("size,more\n1,2\n")); }) ==
        "new.csv: lacks the column colour, from which the model learned; it has size, more");

  const auto tested = model.evaluate(
      fresh("kind,more,colour,size\ncat,1,red,1002\ndog,2,blue,\n,3,red,1001\ncat,4,blue,1003\n"));
  CHECK(tested.examples() == 3);  // one row has no label
  CHECK(tested.accuracy() == doctest::Approx(2.0 / 3));
  CHECK_CONTAINS(tested.summary(), "1 dog");
  CHECK(test::thrown<FileError>([&] { model.evaluate(fresh("size,colour,kind\n1,red,lynx\n")); }) ==
        "new.csv: line 2: there is no class \"lynx\"; there are cat, dog");
  // The new table's own description beside the loaded network.
  const auto other = fresh("size,colour,kind\n3.5,red,ape\n4.5,blue,cat\n3.5,red,cat\n");
  auto data = tableIterator(describeTable(other, {}, allRows(other)), other, allRows(other), 10);
  CHECK_REFUSED(Network::load(path)->evaluate(data),
                "evaluate: class 0 is ape in the data, and cat in the model");
}

TEST_CASE("a row by which the network's numbers overflow is named with its line and its largest feature") {
  const auto table = parseTable("size,age,kind\n1,2,cat\n5,1,dog\n1,7,cat\n2,1,dog\n", {}, "train.csv");
  auto network = std::make_unique<MultiLayerNetwork>(
      MultiLayerConfiguration{.inputShape = {2}, .layers = {Output{.classes = 2}}});
  network->init();
  std::ranges::fill(network->blocks().front().values.span<float>(), 1e20f);
  network->setInputDescription(describeTable(table, {}, allRows(table)));
  TableModel model(std::move(network));
  const auto rows = [](std::string_view last) {
    return parseTable(fmt::format("age,size\n0,0\n1,{}\n", last), {}, "new.csv");
  };
  CHECK(model.predict(rows("0")).classes.size() == 2);
  CHECK(test::thrown<NonFinitePrediction>([&] { model.predict(rows("1e30")); }) ==
        "predict: a prediction for example 1 is NaN (line 3 of new.csv); the largest of its features is "
        "1e+30, in size");
}

TEST_CASE("a model without a table's description, or with another one, is refused") {
  const test::TemporaryDirectory directory;
  const auto path = directory / "m.safetensors";
  MultiLayerNetwork network({.inputShape = {1}, .layers = {Output{.classes = 3}}});
  network.init();
  network.save(path);
  const auto refused = [&] { return test::thrown<FileError>([&] { TableModel::load(path); }); };
  CHECK(refused() == path.string() +
                         ": the model does not know the columns of its table; it was trained on "
                         "other data, or saved without setInputDescription");
  for (const auto& [description, problem] :
       {std::pair<InputDescription, std::string>{{.columns = {{.name = "x"}}},
                                                 "the model's outputs have no names"},
        {{.pictures = PictureDescription{.channels = 1, .height = 1, .width = 1}, .classes = {"a", "b", "c"}},
         "it is a model of pictures, not of a table; PictureModel predicts with it"}}) {
    network.setInputDescription(description);
    network.save(path);
    CHECK(refused() == path.string() + ": " + problem);
  }
}

TEST_CASE("a regression is evaluated in the table's units, and predicted in them") {
  const auto table = parseTable("x,price\n1.5,100\n2,300\n3,500\n4,300\n", {}, "prices.csv");
  const auto description = describeTable(table, {.regression = true}, allRows(table));
  auto network = std::make_unique<MultiLayerNetwork>(
      MultiLayerConfiguration{.inputShape = {description.features()},
                              .layers = {Output{.units = 1, .loss = Loss::MeanSquaredError}}});
  network->init();
  network->setInputDescription(description);
  for (float& parameter : network->block(BlockKind::Parameters).values.span<float>()) parameter = 0;
  TableModel model(std::move(network));  // predicts the mean, 300
  const auto tested = model.evaluate(table);
  CHECK(tested.regression().meanAbsoluteError() == doctest::Approx(100));    // (200 + 0 + 200 + 0) / 4
  CHECK(tested.regression().meanSquaredError(0) == doctest::Approx(20000));  // (200^2 + 200^2) / 4
  CHECK_CONTAINS(tested.summary(), "\n     price ");
  CHECK(model.predict(table).valueOf(3) == doctest::Approx(300));
}
