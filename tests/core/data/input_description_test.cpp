#include "muster/core/data/input_description.h"

#include "muster/core/data/class_weights.h"
#include "muster/core/data/in_memory.h"
#include "muster/core/data/prefetch.h"
#include "muster/core/device/context.h"
#include "muster/core/eval/any_evaluation.h"
#include "muster/core/io/model_file.h"
#include "muster/core/nn/learning_rate_finder.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/core/nn/recompute_statistics.h"
#include "muster/parallel/parallel_wrapper.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"

using namespace muster;

namespace {

using Names = std::vector<std::string>;

InputDescription flowers() {
  return {.format = {.header = false, .separator = '\t'},
          .columns =
              {{.name = "size", .filling = 2.5, .missing = true, .logScale = 0.25, .quantiles = {0, 0.1, 4}},
               {.name = "colour", .kind = ColumnKind::Words, .words = {"blue", "red"}, .others = true},
               {.name = "seen",
                .kind = ColumnKind::Date,
                .filling = 9000,
                .order = DateOrder::DayMonthYear,
                .year = true,
                .week = true,
                .day = true}},
          .omitted = {{"id", "every value differs"}},
          .label = "kind",
          .classes = {"a", "b"}};
}

MultiLayerConfiguration layers() {
  return {.inputShape = {19}, .layers = {Output{.classes = 2}}};
}

std::string difference(void (*change)(InputDescription&)) {
  auto other = flowers();
  change(other);
  return test::thrown<InvalidArgument>([&] { flowers().requireSame(other, "rows.csv", "the model"); });
}

}  // namespace

TEST_CASE("a column has one feature for each number, word and part of a date") {
  const auto names = flowers().featureNames();
  CHECK(Names(names.begin(), names.begin() + 7) == Names{"size", "size (log)", "size (rank)",
                                                         "size (missing)", "colour=blue", "colour=red",
                                                         "colour=(other)"});
  CHECK(names.size() == 4 + 3 + 12);  // days; year 2, week 7, day 2
  CHECK(flowers().features() == 19);
  for (const auto& column : flowers().columns) CHECK(column.features() == std::ssize(column.featureNames()));
}

TEST_CASE("a description is the same after it was written as JSON") {
  CHECK(InputDescription::fromJson(flowers().toJson()) == flowers());
  const InputDescription pictures{.pictures = PictureDescription{1, 28, 30}, .classes = {"cat", "dog"}};
  CHECK(InputDescription::fromJson(pictures.toJson()) == pictures);
  const InputDescription numbers{.columns = {{.name = "a"}}, .targets = {{"y", 3.5, 0.1}, {"z", -1, 2}}};
  CHECK(InputDescription::fromJson(numbers.toJson()) == numbers);
  CHECK(InputDescription().empty());
  CHECK_CONTAINS(test::thrown<InvalidArgument>([] { InputDescription::fromJson(R"({"coluns": []})"); }),
                 "the nearest is columns");
  CHECK_REFUSED(InputDescription::fromJson(R"({"targets": [{"name": "y", "mean": 0, "scale": 0}]})"),
                "targets: the scale of y must be positive, got 0");
  CHECK_REFUSED(
      InputDescription::fromJson(R"({"columns": [{"name": "c", "kind": "words", "words": ["b", "a"]}]})"),
      "columns: the words of c are not in order");
  CHECK_REFUSED(InputDescription::fromJson(
                    R"({"columns": [{"name": "c", "kind": "number", "filling": 1, "quantiles": [1, 1]}]})"),
                "columns: the quantiles of c must rise");
}

TEST_CASE("what differs is named; fillings and omitted columns may differ") {
  CHECK_NOTHROW(flowers().requireSame(flowers(), "rows.csv", "the model"));
  auto other = flowers();
  other.columns[0].filling = 7;
  other.omitted.clear();
  CHECK_NOTHROW(flowers().requireSame(other, "rows.csv", "the model"));
  CHECK(difference([](InputDescription& d) { d.classes[1] = "c"; }) ==
        "class 1 is b in rows.csv, and c in the model");
  CHECK(difference([](InputDescription& d) { d.classes.push_back("c"); }) ==
        "rows.csv has 2 classes (a, b), and the model has 3 (a, b, c)");
  CHECK(difference([](InputDescription& d) { d.label = "type"; }) ==
        "the column of the classes is kind in rows.csv, and type in the model");
  CHECK(difference([](InputDescription& d) { d.label = ""; }) ==
        "the column of the classes is kind in rows.csv, and the model has none");
  CHECK_REFUSED(InputDescription().requireSame(flowers(), "rows.csv", "the model"),
                "the column of the classes is kind in the model, and rows.csv has none");
  CHECK(difference([](InputDescription& d) { d.columns[0].name = "height"; }) ==
        "column 1 is size in rows.csv, and height in the model");
  CHECK(difference([](InputDescription& d) { d.columns.pop_back(); }) ==
        "column seen is in rows.csv, and not in the model");
  CHECK(difference([](InputDescription& d) { d.columns[0].kind = ColumnKind::Date; }) ==
        "column size holds number in rows.csv, and date in the model");
  CHECK(difference([](InputDescription& d) { d.columns[1].words = {"blue"}; }) ==
        "column colour has the words blue, red in rows.csv, and blue in the model");
  CHECK(difference([](InputDescription& d) { d.columns[0].missing = false; }) ==
        "column size has the features size, size (log), size (rank), size (missing) in rows.csv, and size, "
        "size (log), size (rank) in the model");
  const auto regress = [](InputDescription& d) {
    d.label.clear();
    d.classes.clear();
    d.targets.push_back({"price"});
  };
  CHECK(difference(regress) == "rows.csv has the classes of kind, and the model is a regression of price");
  auto prices = flowers();
  regress(prices);
  CHECK_REFUSED(prices.requireSame(flowers(), "rows.csv", "the model"),
                "the model has the classes of kind, and rows.csv is a regression of price");
  CHECK(difference([](InputDescription& d) { d.targets.push_back({"y"}); }) ==
        "rows.csv has 0 numbers to predict, and the model has 1");
}

TEST_CASE("a network's description is in its copies, replicas and files") {
  test::TemporaryDirectory directory;
  MultiLayerNetwork model(layers());
  model.init();
  const auto plain = directory / "plain.safetensors", described = directory / "described.safetensors";
  model.save(plain);
  CHECK(Network::load(plain)->inputDescription().empty());
  model.setInputDescription(flowers());
  model.save(described);
  CHECK(Network::load(described)->inputDescription() == flowers());
  CHECK(readModelNotes(described).empty());
  CHECK(model.clone()->inputDescription() == flowers());
  Context context(Device::cpu());
  CHECK(dynamic_cast<Network&>(*model.replicate(context)).inputDescription() == flowers());
  model.init();
  CHECK(model.inputDescription() == flowers());

  MultiLayerNetwork other(layers());
  loadState(other, described);
  CHECK(other.inputDescription() == flowers());
  auto renamed = flowers();
  renamed.classes = {"b", "a"};
  other.setInputDescription(renamed);
  CHECK(test::thrown<FileError>([&] {
          loadState(other, described);
        }).ends_with("class 0 is a in the file, and b in the data here"));
  loadState(other, plain);
  CHECK(other.inputDescription() == renamed);

  const auto refused = [&](void (*change)(InputDescription&)) {
    auto changed = flowers();
    change(changed);
    other.setInputDescription(changed);
    return test::thrown<FileError>([&] { loadState(other, described); });
  };
  const std::string reason =
      " has another filling, scale, quantile or order of dates in the file than in the data here; read the "
      "data by the model's own description (Network::inputDescription, readInputDescription)";
  CHECK(refused([](InputDescription& d) { d.columns[0].filling = 7; }).ends_with("column size" + reason));
  CHECK(refused([](InputDescription& d) { d.columns[0].logScale = 2; }).ends_with("column size" + reason));
  CHECK(
      refused([](InputDescription& d) { d.columns[0].quantiles[1] = 1; }).ends_with("column size" + reason));
  CHECK(refused([](InputDescription& d) {
          d.columns[2].order = DateOrder::MonthDayYear;
        }).ends_with("column seen" + reason));
  auto same = flowers();
  same.omitted.clear();
  same.format.separator = ',';
  other.setInputDescription(same);
  loadState(other, described);
  CHECK(other.inputDescription() == flowers());
}

TEST_CASE("labels scaled by another mean are refused") {
  const test::TemporaryDirectory directory;
  MultiLayerNetwork model(
      {.inputShape = {1}, .layers = {Output{.units = 1, .loss = Loss::MeanSquaredError}}});
  model.init();
  model.setInputDescription({.columns = {{.name = "x"}}, .targets = {{"y", 100, 10}}});
  model.save(directory / "m");
  model.setInputDescription({.columns = {{.name = "x"}}, .targets = {{"y", 90, 10}}});
  CHECK(test::thrown<FileError>([&] { loadState(model, directory / "m"); })
            .ends_with(
                "the number to predict, y, has another mean or scale in the file than in the data here; read "
                "the data by the model's own description (Network::inputDescription, readInputDescription)"));
  CHECK(model.inputDescription().targets.front().mean == 90);
}

TEST_CASE("a description that cannot be read is named, and no note takes its place") {
  const test::TemporaryDirectory directory;
  MultiLayerNetwork model(
      {.inputShape = {1}, .layers = {Output{.units = 1, .loss = Loss::MeanSquaredError}}});
  model.init();
  CHECK_REFUSED(saveModel(model, directory / "m", {{"muster.input", "x"}}),
                "model file: a note cannot be named \"muster.input\"");
  model.setInputDescription({.columns = {{.name = "x"}}, .targets = {{"y", 0, 0}}});  // a scale of 0
  model.save(directory / "m");
  const std::string problem =
      (directory / "m").string() +
      ": its input description cannot be used: targets: the scale of y must be positive, got 0";
  CHECK(test::thrown<FileError>([&] { Network::load(directory / "m"); }) == problem);
  CHECK(test::thrown<FileError>([&] { readInputDescription(directory / "m"); }) == problem);
}

TEST_CASE(
    "a model trains with and is evaluated on data of its own description only, and on undescribed data") {
  MultiLayerNetwork model(layers());
  model.init();
  model.setInputDescription(flowers());
  InMemoryDataSetIterator data(Tensor::zeros({4, 19}), Tensor::zeros({4}, DType::Int64), 2);
  CHECK(model.evaluate(data).examples() == 4);  // not known
  const auto problem = [&](void (*change)(InputDescription&)) {
    auto changed = flowers();
    change(changed);
    data.setDescription(changed);
    return test::thrown<InvalidArgument>([&] { model.evaluate(data); });
  };
  const auto renamed = [](InputDescription& d) { d.classes[1] = "c"; };
  CHECK(problem(renamed) == "evaluate: class 1 is c in the data, and b in the model");
  CHECK(problem([](InputDescription& d) { d.columns[0].filling = 3; }) ==
        "evaluate: column size has another filling, scale, quantile or order of dates in the data than in "
        "the model; read the data by the model's own description (Network::inputDescription, "
        "readInputDescription)");
  CHECK(problem([](InputDescription& d) {
          d = {.pictures = PictureDescription{3, 2, 3}, .classes = {"a", "b"}};
        }) == "evaluate: the data are pictures, and the model is one of a table");

  problem(renamed);
  const auto refused = [&](auto call) {
    const auto text = test::thrown<InvalidArgument>(call);
    CHECK_MESSAGE(text.ends_with(": class 1 is c in the data, and b in the model"), text);
    return text.substr(0, text.find(':'));
  };
  CHECK(refused([&] { model.fit(data); }) == "fit");
  CHECK(refused([&] { findLearningRate(model, data); }) == "fit");
  CHECK(refused([&] { model.fitNormalisation(data); }) == "fit normalisation");
  CHECK(refused([&] { recomputeStatistics(model, data); }) == "recompute statistics");
  CHECK(refused([&] { model.evaluateBinary(data); }) == "evaluate");
  PrefetchingIterator ahead(data, 2);
  ClassWeights weighted(ahead, {1, 2});
  CHECK(refused([&] { model.fit(weighted); }) == "fit");  // iterators around it
  CHECK(model.iteration() == 0);

  model.setInputDescription(*data.description());  // now it is a model of these classes
  model.fit(weighted);
  CHECK(model.evaluate(data).examples() == 4);
}

TEST_CASE("labels of a regression scaled otherwise are refused, not scored") {
  MultiLayerNetwork model(
      {.inputShape = {1}, .layers = {Output{.units = 1, .loss = Loss::MeanSquaredError}}});
  model.init();
  const InputDescription prices{.columns = {{.name = "x"}}, .targets = {{"price", 100, 10}}};
  model.setInputDescription(prices);
  InMemoryDataSetIterator data(Tensor::zeros({2, 1}), Tensor::zeros({2, 1}), 2);
  auto others = prices;
  others.targets[0].mean = 200;
  data.setDescription(others);
  CHECK_REFUSED(
      model.evaluateRegression(data),
      "evaluate: the number to predict, price, has another mean or scale in the data than in the model; read "
      "the data by the model's own description (Network::inputDescription, readInputDescription)");
  data.setDescription(prices);
  CHECK(model.evaluateRegression(data).examples() == 2);
}

TEST_CASE("a description of other outputs or inputs than the network's is refused before the training") {
  const std::string outputs = "the model has 5 outputs, and its description names 3 classes: a, b, c";
  const InputDescription three{.columns = {{.name = "x"}}, .classes = {"a", "b", "c"}};
  MultiLayerNetwork ready({.inputShape = {1}, .layers = {Output{.classes = 5}}});
  ready.init();
  const auto problem = [](Network& network, const InputDescription& description) {
    return test::thrown<InvalidArgument>([&] { network.setInputDescription(description); });
  };
  CHECK(problem(ready, three) == outputs);
  CHECK(ready.inputDescription().empty());
  CHECK(problem(ready, {.columns = {{.name = "x"}}, .targets = {{"y"}, {"z"}}}) ==
        "the model has 5 outputs, and its description names 2 numbers to predict: y, z");
  CHECK(problem(ready, {.classes = {"a"}, .targets = {{"y"}}}) ==
        "the model's description names both classes and numbers to predict; its outputs are one of them");
  CHECK(problem(ready, {.columns = {{.name = "x"}, {.name = "z"}}}) ==
        "the model reads [1], and its description makes 2 features");

  // Before the shapes are known nothing can be compared; then the first batch or init() does.
  MultiLayerNetwork open({.layers = {Output{.classes = 5}}});
  open.setInputDescription(three);
  InMemoryDataSetIterator data(Tensor::zeros({4, 1}), Tensor::zeros({4}, DType::Int64), 2);
  CHECK_REFUSED(open.fit(data), outputs);
  CHECK(!open.initialized());
  MultiLayerNetwork shaped({.inputShape = {1}, .layers = {Output{.classes = 5}}});
  shaped.setInputDescription(three);
  CHECK_REFUSED(shaped.init(), outputs);

  MultiLayerNetwork single(
      {.inputShape = {1}, .layers = {Output{.units = 1, .loss = Loss::BinaryCrossEntropy}}});
  single.init();
  single.setInputDescription({.columns = {{.name = "x"}}, .classes = {"no", "yes"}});
  CHECK(problem(single, three) == "the model has 1 output, and its description names 3 classes: a, b, c");
}

TEST_CASE("an evaluation names a model's classes, and gives errors in a target's own units") {
  MultiLayerNetwork prices(
      {.inputShape = {1},
       .layers = {Output{.units = 1, .loss = Loss::MeanSquaredError, .activation = Activation::Identity}}});
  prices.init();
  prices.setInputDescription({.columns = {{.name = "x"}}, .targets = {{"price", 100, 10}}});
  for (float& parameter : prices.block(BlockKind::Parameters).values.span<float>()) parameter = 0;
  // It predicts 0, a price of 100; the prices are 110, 80, 100 and 120: errors of 10, 20, 0 and 20.
  InMemoryDataSetIterator data(Tensor::zeros({4, 1}), Tensor::of({1, -2, 0, 2}, {4, 1}), 3);
  const auto scores = prices.evaluateRegression(data);
  CHECK(scores.meanSquaredError() == 225);
  CHECK(scores.rootMeanSquaredError(0) == 15);
  CHECK(scores.meanAbsoluteError() == 12.5);
  CHECK(scores.r2() == doctest::Approx(1 - 900.0 / 875));  // deviations from 102.5
  CHECK(scores.summary() == R"(4 examples, 1 column: R2 -0.0286, RMSE 15, MAE 12.5, in the column's own units

    column          MSE         RMSE          MAE         R2  correlation
     price          225           15         12.5    -0.0286       0.0000
)");
  CHECK(prices.evaluateTask(data).line() == "R2 -0.0286, RMSE 15, MAE 12.5");
  CHECK(prices.evaluateTask(data).loss() == 9.0 / 4);  // the network's own, of the scaled target

  MultiLayerNetwork kinds({.inputShape = {1}, .layers = {Output{.classes = 2}}});
  kinds.init();
  kinds.setInputDescription({.columns = {{.name = "x"}}, .classes = {"long-haired", "Überrascht"}});
  auto parameters = kinds.block(BlockKind::Parameters).values.span<float>();
  std::ranges::fill(parameters, 0.0f);  // equal: the first class
  InMemoryDataSetIterator two(Tensor::zeros({3, 1}), Tensor::zeros({3}, DType::Int64), 3);
  CHECK(kinds.evaluate(two).summary() == R"(3 examples, 2 classes: accuracy 1.0000, loss 0.6931

        class   examples  precision     recall         F1
0 long-haired          3     1.0000     1.0000     1.0000
 1 Überrascht          0     0.0000     0.0000     0.0000
   macro mean          3     1.0000     1.0000     1.0000

confusion matrix (rows: true class, columns: predicted class)
              0 1
0 long-haired 3 0
 1 Überrascht 0 0
)");
}

TEST_CASE("an evaluation of a model without a description names what the data say") {
  MultiLayerNetwork network({.inputShape = {1}, .layers = {Output{.classes = 2}}});
  network.init();
  InMemoryDataSetIterator data(Tensor::zeros({3, 1}), Tensor::zeros({3}, DType::Int64), 2);
  CHECK(network.evaluate(data).classNames().empty());
  data.setDescription({.classes = {"cat", "dog"}});
  CHECK(network.evaluate(data).classNames() == std::vector<std::string>{"cat", "dog"});
  auto wrapper = ParallelWrapper::Builder(network).workers(2).pinThreads(false).build();
  CHECK(wrapper.evaluate(data).classNames() == std::vector<std::string>{"cat", "dog"});
  data.setDescription({.classes = {"cat", "dog", "cow"}});  // of other data
  CHECK(network.evaluate(data).classNames().empty());
}

TEST_CASE("an evaluation names labels of which an example may have several") {
  MultiLayerNetwork network(
      {.inputShape = {1},
       .layers = {
           Output{.classes = 2, .loss = Loss::BinaryCrossEntropy, .activation = Activation::Sigmoid}}});
  network.init();
  network.setInputDescription({.classes = {"in German", "über Kunst"}});
  for (float& parameter : network.block(BlockKind::Parameters).values.span<float>()) parameter = 0;
  InMemoryDataSetIterator data(Tensor::zeros({2, 1}), Tensor::of({1, 0, 0, 0}, {2, 2}), 2);
  // All predictions are 0.5: no label is predicted.
  CHECK(network.evaluateBinary(data).summary() ==
        R"(2 examples, 2 labels: accuracy 0.7500, AUC 0.5000, all labels right 0.5000

     label  positives   accuracy  precision     recall         F1        AUC         AP
 in German          1     0.5000     0.0000     0.0000     0.0000     0.5000     0.5000
über Kunst          0     1.0000     0.0000     0.0000     0.0000        nan        nan
      mean                0.7500     0.0000     0.0000     0.0000     0.5000     0.5000
)");
  BinaryEvaluation other(2);
  CHECK_REFUSED(other.setLabelNames({"one"}), "evaluation: 1 name for 2 labels");
}
