#include "muster/datasets/table_model.h"

#include <fmt/format.h>

#include "muster/core/data/in_memory.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/eval/regression_evaluation.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/datasets/table_description.h"
#include "muster/datasets/table_examples.h"
#include "tests/support/log_lines.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"

using namespace muster;

namespace {

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("outputs become classes by name and numbers in their own units") {
  const InputDescription kinds{.classes = {"a", "b", "c"}};
  const auto named = namedOutputs(kinds, Tensor::of({0.2f, 0.5f, 0.3f, 0.6f, 0.1f, 0.3f}, {2, 3}));
  CHECK(named.names == Names{"a", "b", "c"});
  CHECK(named.classes == Names{"b", "a"});
  CHECK(named.classOf(1) == "a");
  CHECK(named.valueOf(1, 2) == 0.3f);
  CHECK(test::thrown<InvalidArgument>([&] { named.classOf(2); }) ==
        "predictions: there is no row 2, only 2 rows");

  // One sigmoid output: the second class above 0.5, as Evaluation counts it.
  const InputDescription two{.classes = {"no", "yes"}};
  const auto single = namedOutputs(two, Tensor::of({0.5f, 0.75f}, {2, 1}));
  CHECK(single.classes == Names{"no", "yes"});
  CHECK(single.values.shape() == Shape{2, 2});
  CHECK(single.values.data<float>()[2] == 0.25f);
  CHECK(single.values.data<float>()[3] == 0.75f);

  const InputDescription numbers{.targets = {{"y", 100, 10}, {"z", -1, 0.5}}};
  const auto scaled = namedOutputs(numbers, Tensor::of({1.5f, 2.0f}, {1, 2}));
  CHECK(scaled.names == Names{"y", "z"});
  CHECK(scaled.classes.empty());
  CHECK(scaled.values.data<float>()[0] == 115);
  CHECK(scaled.values.data<float>()[1] == 0);

  const auto problem = [](const InputDescription& described, const Shape& outputs) {
    return test::thrown<InvalidArgument>([&] { namedOutputs(described, Tensor::zeros(outputs)); });
  };
  CHECK(problem({.classes = {"no", "yes"}, .targets = {{"y", 100, 10}}}, {1, 1}) ==
        "the model's description names both classes and numbers to predict; its outputs are one of them");
  CHECK(problem({}, {1, 2}) ==
        "the model's outputs have no names: its description has neither classes nor numbers to predict");
  CHECK(problem(numbers, {1, 1}) ==
        "the model has 1 output, and its description names 2 numbers to predict: y, z");

  // Several sigmoid outputs: each label has a probability of its own, and none is the class.
  const auto labels = namedOutputs(kinds, Tensor::of({0.9f, 0.75f, 0.25f}, {1, 3}), Task::Labels);
  CHECK(labels.names == kinds.classes);
  CHECK(labels.classes.empty());
  CHECK(labels.valueOf(0, 1) == 0.75f);
}

TEST_CASE("a model file alone predicts new rows, in any order of columns and without the label") {
  test::TemporaryDirectory directory;
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
  InMemoryDataSetIterator rows(tableFeatures(description, table, train),
                               tableLabels(description, table, train), 10, 1);
  network.fit(rows, 20);
  network.setInputDescription(description);
  network.save(directory / "m.safetensors");

  auto model = TableModel::load(directory / "m.safetensors");
  const auto predicted = model.predict(parseTable("colour,more,size\nred,x,1002\nblue,y,\n", {}, "new.csv"));
  CHECK(predicted.classes == Names{"cat", "dog"});
  CHECK(predicted.names == Names{"cat", "dog"});
  const test::LogLines log;
  model.predict(parseTable("colour,size\nRed,1\ngold,2\nRed,3\nred,4\n,5\n", {}, "new.csv"));
  CHECK(log.all() == Names{"column colour: 3 rows have words for which the model has no feature: \"Red\" "
                           "(known is \"red\"), \"gold\""});
  CHECK(test::thrown<FileError>([&] { model.predict(parseTable("size,more\n1,2\n", {}, "new.csv")); }) ==
        "new.csv: lacks the column colour, from which the model learned; it has size, more");
}

TEST_CASE("words in a column of numbers are named, as they are in a training") {
  auto network = std::make_unique<MultiLayerNetwork>(
      MultiLayerConfiguration{.inputShape = {2}, .layers = {Output{.classes = 2}}});
  network->init();
  network->setInputDescription(
      {.columns = {{.name = "size", .missing = true}}, .label = "kind", .classes = {"cat", "dog"}});
  TableModel model(std::move(network));
  const test::LogLines log;
  CHECK(model.predict(parseTable("size,kind\n1,cat\n?,cat\nbroken,cat\n2,dog\nlost,dog\n", {}, "f.csv"))
            .classes.size() == 5);
  CHECK(log.all() ==
        Names{"warning: column size: 2 rows have words where it has numbers, as if the number were "
              "missing: \"broken\" in line 4, \"lost\" in line 6"});
}

TEST_CASE("one sigmoid output learns a table's two classes") {
  std::string text = "x,bought\n";
  for (int i = 0; i < 40; ++i) text += fmt::format("{},{}\n", i * i, i < 20 ? "no" : "yes");
  const auto table = parseTable(text, {}, "train.csv");
  const auto description = describeTable(table, {}, allRows(table));
  auto network = std::make_unique<MultiLayerNetwork>(
      MultiLayerConfiguration{.seed = 1,
                              .updater = Adam{.learningRate = 0.1},
                              .layers = {Normalise{}, Output{.units = 1, .loss = Loss::BinaryCrossEntropy}}});
  auto rows = tableIterator(description, table, allRows(table), 10, 1);
  network->fit(rows, 60);
  CHECK(network->evaluate(rows).accuracy() > 0.9);
  network->setInputDescription(description);
  const auto predicted = TableModel(std::move(network)).predict(parseTable("x\n0\n1600\n", {}, "new.csv"));
  CHECK(predicted.classes == Names{"no", "yes"});
}

TEST_CASE("a model without a table's description, or with another one, is refused") {
  test::TemporaryDirectory directory;
  MultiLayerNetwork network({.inputShape = {1}, .layers = {Output{.classes = 3}}});
  network.init();
  network.save(directory / "m.safetensors");
  CHECK(test::thrown<FileError>([&] { TableModel::load(directory / "m.safetensors"); })
            .ends_with("the model does not know the columns of its table; it was trained on other data, or "
                       "saved without setInputDescription"));
  network.setInputDescription({.columns = {{.name = "x"}}});
  network.save(directory / "m.safetensors");
  CHECK(test::thrown<FileError>([&] {
          TableModel::load(directory / "m.safetensors");
        }).ends_with("the model's outputs have no names"));
  network.setInputDescription(
      {.pictures = PictureDescription{.channels = 1, .height = 1, .width = 1}, .classes = {"a", "b", "c"}});
  network.save(directory / "m.safetensors");
  CHECK(test::thrown<FileError>([&] {
          TableModel::load(directory / "m.safetensors");
        }).ends_with("it is a model of pictures, not of a table; PictureModel predicts with it"));
}

TEST_CASE("a loaded model is evaluated on new labelled rows, which may not mean something else") {
  test::TemporaryDirectory directory;
  const std::string header = "size,colour,kind\n";
  std::string text = header;
  for (int i = 0; i < 60; ++i)
    text += fmt::format("{},{},{}\n", 10 + i % 7, i % 2 == 0 ? "red" : "blue", i % 2 == 0 ? "cat" : "dog");
  const auto table = parseTable(text, {}, "train.csv");
  const auto description = describeTable(table, {}, allRows(table));
  auto rows = tableIterator(description, table, allRows(table), 10, 1);
  MultiLayerNetwork network(
      {.seed = 1, .updater = Adam{.learningRate = 0.05}, .layers = {Normalise{}, Output{.classes = 2}}});
  network.setInputDescription(description);
  network.fit(rows, 20);
  network.save(directory / "m.safetensors");

  auto model = TableModel::load(directory / "m.safetensors");
  const auto tested = model.evaluate(parseTable(
      "kind,more,colour,size\ncat,1,red,12\ndog,2,blue,\n,3,red,11\ncat,4,blue,13\n", {}, "new.csv"));
  CHECK(tested.examples() == 3);  // one row has no label
  CHECK(tested.accuracy() == doctest::Approx(2.0 / 3));
  CHECK_CONTAINS(tested.summary(), "1 dog");
  CHECK(test::thrown<FileError>([&] {
          model.evaluate(parseTable("size,colour,kind\n1,red,lynx\n", {}, "new.csv"));
        }) == "new.csv: line 2: there is no class \"lynx\"; there are cat, dog");

  // The trial: the new table's own description beside the loaded network.
  const auto evaluated = [&](std::string_view from, std::string_view to, std::string_view names) {
    std::string changed(names);
    for (std::size_t i = header.size(); i < text.size(); ++i)
      if (text.compare(i, from.size(), from) == 0)
        changed += to, i += from.size() - 1;
      else
        changed += text[i];
    const auto other = parseTable(changed, {}, "new.csv");
    auto data = tableIterator(describeTable(other, {}, allRows(other)), other, allRows(other), 10);
    return test::thrown<InvalidArgument>([&] { Network::load(directory / "m.safetensors")->evaluate(data); });
  };
  CHECK(evaluated("dog", "ape", header) == "evaluate: class 0 is ape in the data, and cat in the model");
  CHECK(evaluated("red", "rot", header) ==
        "evaluate: column colour has the words blue, rot in the data, and blue, red in the model");
  CHECK(evaluated("#", "#", "height,colour,kind\n") ==
        "evaluate: column 1 is height in the data, and size in the model");
}

TEST_CASE("a regression is evaluated in the table's units, and asking for its classes is an error") {
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
  const auto predicted = model.predict(table);
  CHECK(predicted.valueOf(3) == doctest::Approx(300));
  CHECK(test::thrown<InvalidArgument>([&] { predicted.classOf(0); }) ==
        "predictions: a regression has no classes; valueOf has its numbers");
  CHECK(test::thrown<InvalidArgument>([&] { predicted.valueOf(4); }) ==
        "predictions: there is no row 4 with a column 0 in 4 rows of 1");
  CHECK_THROWS_AS(predicted.valueOf(0, 1), InvalidArgument);
}
