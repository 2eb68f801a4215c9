#include "muster/datasets/table_model.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "muster/core/base/error.h"
#include "muster/core/data/in_memory.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/datasets/table_description.h"
#include "muster/datasets/table_examples.h"
#include "tests/support/log_lines.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/thrown.h"

using namespace muster;

namespace {

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("outputs become classes by name and numbers in their own units") {
  const InputDescription kinds{.classes = {"a", "b", "c"}};
  const auto named = namedOutputs(kinds, Tensor::of({0.2f, 0.5f, 0.3f, 0.6f, 0.1f, 0.3f}, {2, 3}));
  CHECK(named.names == Names{"a", "b", "c"});
  CHECK(named.classes == Names{"b", "a"});

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
  CHECK(problem({}, {1, 2}) == "the model has 2 outputs, and its description names 0");
  CHECK(problem(numbers, {1, 1}) == "the model has 1 output, and its description names 2");
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
  CHECK(log.all() == Names{"column colour: 3 rows have words for which the model has no feature: "
                           "\"Red\" (known is \"red\"), \"gold\""});
  CHECK(test::thrown<FileError>([&] { model.predict(parseTable("size,more\n1,2\n", {}, "new.csv")); }) ==
        "new.csv: lacks the column colour, from which the model learned; it has size, more");
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
  const auto predicted =
      TableModel(std::move(network)).predict(parseTable("x,more\n0,\n1600,\n", {}, "new.csv"));
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
  network.setInputDescription({.columns = {{.name = "x"}}, .classes = {"a", "b"}});
  network.save(directory / "m.safetensors");
  CHECK(test::thrown<FileError>([&] {
          TableModel::load(directory / "m.safetensors");
        }).ends_with("the model has 3 outputs, and its description names 2"));
  network.setInputDescription({.columns = {{.name = "x"}, {.name = "z"}}, .classes = {"a", "b", "c"}});
  network.save(directory / "m.safetensors");
  CHECK(test::thrown<FileError>([&] {
          TableModel::load(directory / "m.safetensors");
        }).ends_with("the model reads [1], and its description makes 2 features"));
}
