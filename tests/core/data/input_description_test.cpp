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
#include "tests/support/test.h"

namespace muster::test {
namespace {

using Names = std::vector<std::string>;
using Change = void (*)(InputDescription&);

InputDescription flowers(Change change = [](InputDescription&) {}) {
  InputDescription all{
      .format = {.header = false, .separator = '\t'},
      .unnamedColumns = 5,
      .columns =
          {{.name = "size", .filling = 2.5, .missing = true, .logScale = 0.25, .quantiles = {0, 0.1, 4}},
           {.name = "colour", .kind = ColumnKind::Words, .words = {"blue", "red"}, .others = true},
           {.name = "seen",
            .kind = ColumnKind::Date,
            .filling = 9000,
            .order = DateOrder::DayMonthYear,
            .separators = "-.",
            .year = true,
            .week = true,
            .day = true}},
      .omitted = {{"id", "every value differs"}},
      .label = "kind",
      .classes = {"a", "b"}};
  change(all);
  return all;
}

/// A regression of x with this target.
InputDescription regression(const std::string& name, double mean, double scale) {
  return {.columns = {{.name = "x"}}, .targets = {{name, mean, scale}}};
}

/// An initialised network whose parameters are all 0.
std::unique_ptr<MultiLayerNetwork> zeros(const Output& output, std::int64_t inputs = 1) {
  auto network = std::make_unique<MultiLayerNetwork>(
      MultiLayerConfiguration{.inputShape = {inputs}, .layers = {output}});
  network->init();
  std::ranges::fill(network->block(BlockKind::Parameters).values.span<float>(), 0.0f);
  return network;
}

const Output kNumber{.units = 1, .loss = Loss::MeanSquaredError, .activation = Activation::Identity};

/// Examples of features 0 and class 0.
InMemoryDataSetIterator zeroExamples(std::int64_t count, std::int64_t features = 1) {
  return {Tensor::zeros({count, features}), Tensor::zeros({count}, DType::Int64), 2};
}

const std::string kHint =
    "; read the data by the model's own description (Network::inputDescription, readInputDescription)";

TEST_CASE("a column has one feature for each number, word and part of a date") {
  const auto names = flowers().featureNames();
  CHECK(Names(names.begin(), names.begin() + 7) == Names{"size", "size (log)", "size (rank)",
                                                         "size (missing)", "colour=blue", "colour=red",
                                                         "colour=(other)"});
  CHECK(names.size() == 4 + 3 + 12);  // days; year 2, week 7, day 2
  CHECK(flowers().features() == 19);
  for (const auto& column : flowers().columns) CHECK(column.features() == std::ssize(column.featureNames()));
}

TEST_CASE("a description is the same after it was written as JSON, and an impossible one is refused") {
  for (const InputDescription& one :
       {flowers(),
        {.pictures = PictureDescription{1, 28, 30}, .classes = {"cat", "dog"}},
        {.columns = {{.name = "a"}}, .targets = {{"y", 3.5, 0.1}, {"z", -1, 2}}}})
    CHECK(InputDescription::fromJson(one.toJson()) == one);
  CHECK(InputDescription().empty());
  const auto problem = [](const char* json) {
    return thrown<InvalidArgument>([&] { InputDescription::fromJson(json); });
  };
  CHECK_CONTAINS(problem(R"({"coluns": []})"), "the nearest is columns");
  CHECK(problem(R"({"targets": [{"name": "y", "mean": 0, "scale": 0}]})") ==
        "targets: the scale of y must be positive, got 0");
  CHECK(problem(R"({"columns": [{"name": "c", "kind": "words", "words": ["b", "a"]}]})") ==
        "columns: the words of c are not in order");
  CHECK(problem(R"({"columns": [{"name": "c", "kind": "number", "filling": 1, "quantiles": [1, 1]}]})") ==
        "columns: the quantiles of c must rise");
}

TEST_CASE("what differs is named; fillings and omitted columns may differ") {
  const auto between = [](const InputDescription& rows, const InputDescription& model) {
    return thrown<InvalidArgument>([&] { rows.requireSame(model, "rows", "the model"); });
  };
  const auto difference = [&](Change change) { return between(flowers(), flowers(change)); };
  CHECK(difference([](auto&) {}) == "");
  CHECK(difference([](auto& d) { d.columns[0].filling = 7; }) == "");
  CHECK(difference([](auto& d) { d.omitted.clear(); }) == "");
  CHECK(difference([](auto& d) { d.classes[1] = "c"; }) == "class 1 is b in rows, and c in the model");
  CHECK(difference([](auto& d) { d.classes.push_back("c"); }) ==
        "rows has 2 classes (a, b), and the model has 3 (a, b, c)");
  const std::string label = "the column of the classes is kind in ";
  CHECK(difference([](auto& d) { d.label = "type"; }) == label + "rows, and type in the model");
  CHECK(difference([](auto& d) { d.label = ""; }) == label + "rows, and the model has none");
  CHECK(between({}, flowers()) == label + "the model, and rows has none");
  CHECK(difference([](auto& d) { d.columns[0].name = "height"; }) ==
        "column 1 is size in rows, and height in the model");
  CHECK(difference([](auto& d) { d.columns.pop_back(); }) == "column seen is in rows, and not in the model");
  CHECK(difference([](auto& d) { d.columns[0].kind = ColumnKind::Date; }) ==
        "column size holds number in rows, and date in the model");
  CHECK(difference([](auto& d) { d.columns[1].words[1] = "rot"; }) ==
        "column colour has the words blue, red in rows, and blue, rot in the model");
  CHECK(difference([](auto& d) { d.columns[0].missing = false; }) ==
        "column size has the features size, size (log), size (rank), size (missing) in rows, and size, size "
        "(log), size (rank) in the model");
  const auto prices = flowers([](auto& d) {
    d.label.clear();
    d.classes.clear();
    d.targets.push_back({"price"});
  });
  CHECK(between(flowers(), prices) == "rows has the classes of kind, and the model is a regression of price");
  CHECK(between(prices, flowers()) == "the model has the classes of kind, and rows is a regression of price");
  CHECK(difference([](auto& d) { d.targets.push_back({"y"}); }) ==
        "rows has 0 numbers to predict, and the model has 1");
}

TEST_CASE("a network's description is in its copies, replicas and files") {
  const TemporaryDirectory directory;
  const auto model = zeros({.classes = 2}, 19), other = zeros({.classes = 2}, 19);
  const auto plain = directory / "plain.safetensors", described = directory / "described.safetensors";
  model->save(plain);
  CHECK(Network::load(plain)->inputDescription().empty());
  model->setInputDescription(flowers());
  model->save(described);
  CHECK(Network::load(described)->inputDescription() == flowers());
  CHECK(readModelNotes(described).empty());
  CHECK(model->clone()->inputDescription() == flowers());
  Context context(Device::cpu());
  CHECK(dynamic_cast<Network&>(*model->replicate(context)).inputDescription() == flowers());
  model->init();
  CHECK(model->inputDescription() == flowers());

  loadState(*other, described);
  CHECK(other->inputDescription() == flowers());
  const auto refused = [&](Change change, const std::string& end) {
    other->setInputDescription(flowers(change));
    const auto text = thrown<FileError>([&] { loadState(*other, described); });
    CHECK_MESSAGE(text.ends_with(end), text);
  };
  refused([](auto& d) { d.classes = {"b", "a"}; }, "class 0 is a in the file, and b in the data here");
  loadState(*other, plain);
  CHECK(other->inputDescription().classes == Names{"b", "a"});
  const std::string size = "column size", seen = "column seen",
                    reason =
                        " has another filling, scale, quantile or order of dates in the file than in the "
                        "data here" +
                        kHint;
  refused([](auto& d) { d.columns[0].filling = 7; }, size + reason);
  refused([](auto& d) { d.columns[0].logScale = 2; }, size + reason);
  refused([](auto& d) { d.columns[0].quantiles[1] = 1; }, size + reason);
  refused([](auto& d) { d.columns[2].order = DateOrder::MonthDayYear; }, seen + reason);
  other->setInputDescription(flowers([](auto& d) {
    d.omitted.clear();
    d.format.separator = ',';
    d.columns[2].separators = "";
  }));
  loadState(*other, described);
  CHECK(other->inputDescription() == flowers());
}

TEST_CASE("labels of a regression scaled otherwise are refused, in files and in data") {
  const TemporaryDirectory directory;
  const auto model = zeros(kNumber);
  model->setInputDescription(regression("y", 100, 10));
  model->save(directory / "m");
  InMemoryDataSetIterator data(Tensor::zeros({2, 1}), Tensor::zeros({2, 1}), 2);
  data.setDescription(regression("y", 200, 10));
  const std::string what = "the number to predict, y, has another mean or scale in the ";
  CHECK_REFUSED(model->evaluateRegression(data), "evaluate: " + what + "data than in the model" + kHint);
  data.setDescription(regression("y", 100, 10));
  CHECK(model->evaluateRegression(data).examples() == 2);
  model->setInputDescription(regression("y", 90, 10));
  CHECK(thrown<FileError>([&] {
          loadState(*model, directory / "m");
        }).ends_with(what + "file than in the data here" + kHint));
  CHECK(model->inputDescription().targets.front().mean == 90);
}

TEST_CASE("a description that cannot be read is named, and no note takes its place") {
  const TemporaryDirectory directory;
  const auto model = zeros(kNumber);
  CHECK_REFUSED(saveModel(*model, directory / "m", {{"muster.input", "x"}}),
                "model file: a note cannot be named \"muster.input\"");
  model->setInputDescription(regression("y", 0, 0));  // a scale of 0
  model->save(directory / "m");
  const std::string problem =
      (directory / "m").string() +
      ": its input description cannot be used: targets: the scale of y must be positive, got 0";
  CHECK(thrown<FileError>([&] { Network::load(directory / "m"); }) == problem);
  CHECK(thrown<FileError>([&] { readInputDescription(directory / "m"); }) == problem);
}

TEST_CASE("a model trains and is evaluated on data of its own description only, and on undescribed data") {
  const auto model = zeros({.classes = 2}, 19);
  model->setInputDescription(flowers());
  auto data = zeroExamples(4, 19);
  CHECK(model->evaluate(data).examples() == 4);  // not known
  const auto problem = [&](Change change) {
    data.setDescription(flowers(change));
    return thrown<InvalidArgument>([&] { model->evaluate(data); });
  };
  CHECK(problem([](auto& d) { d.columns[0].filling = 3; }) ==
        "evaluate: column size has another filling, scale, quantile or order of dates in the data than in "
        "the model" +
            kHint);
  CHECK(problem([](auto& d) {
          d = {.pictures = PictureDescription{3, 2, 3}, .classes = {"a", "b"}};
        }) == "evaluate: the data are pictures, and the model is one of a table");

  data.setDescription(flowers([](auto& d) { d.classes[1] = "c"; }));
  PrefetchingIterator ahead(data, 2);
  ClassWeights weighted(ahead, {1, 2});  // iterators around it
  const auto refused = [&](const std::string& what, auto call) {
    CHECK(thrown<InvalidArgument>(call) == what + ": class 1 is c in the data, and b in the model");
  };
  refused("fit", [&] { model->fit(data); });
  refused("fit", [&] { model->fit(weighted); });
  refused("fit", [&] { findLearningRate(*model, data); });
  refused("fit normalisation", [&] { model->fitNormalisation(data); });
  refused("recompute statistics", [&] { recomputeStatistics(*model, data); });
  refused("evaluate", [&] { model->evaluate(data); });
  refused("evaluate", [&] { model->evaluateBinary(data); });
  CHECK(model->iteration() == 0);

  model->setInputDescription(*data.description());  // now it is a model of these classes
  model->fit(weighted);
  CHECK(model->evaluate(data).examples() == 4);
}

TEST_CASE("a description of other outputs or inputs than the network's is refused before the training") {
  const std::string outputs = "the model has 5 outputs, and its description names 3 classes: a, b, c";
  const InputDescription three{.columns = {{.name = "x"}}, .classes = {"a", "b", "c"}};
  const auto ready = zeros({.classes = 5});
  CHECK_REFUSED(ready->setInputDescription(three), outputs);
  CHECK(ready->inputDescription().empty());
  CHECK_REFUSED(ready->setInputDescription({.columns = {{.name = "x"}}, .targets = {{"y"}, {"z"}}}),
                "the model has 5 outputs, and its description names 2 numbers to predict: y, z");
  CHECK_REFUSED(
      ready->setInputDescription({.classes = {"a"}, .targets = {{"y"}}}),
      "the model's description names both classes and numbers to predict; its outputs are one of them");
  CHECK_REFUSED(ready->setInputDescription({.columns = {{.name = "x"}, {.name = "z"}}}),
                "the model reads [1], and its description makes 2 features");
  // Before the shapes are known nothing can be compared; then the first batch or init() does.
  MultiLayerNetwork open({.layers = {Output{.classes = 5}}});
  open.setInputDescription(three);
  auto data = zeroExamples(4);
  CHECK_REFUSED(open.fit(data), outputs);
  CHECK(!open.initialized());
  MultiLayerNetwork shaped({.inputShape = {1}, .layers = {Output{.classes = 5}}});
  shaped.setInputDescription(three);
  CHECK_REFUSED(shaped.init(), outputs);
  const auto single = zeros({.units = 1, .loss = Loss::BinaryCrossEntropy});
  single->setInputDescription({.columns = {{.name = "x"}}, .classes = {"no", "yes"}});
  CHECK_REFUSED(single->setInputDescription(three),
                "the model has 1 output, and its description names 3 classes: a, b, c");
}

TEST_CASE("an evaluation gives errors in a target's own units") {
  const auto prices = zeros(kNumber);
  prices->setInputDescription(regression("price", 100, 10));
  // It predicts 0, a price of 100; the prices are 110, 80, 100 and 120: errors of 10, 20, 0 and 20.
  InMemoryDataSetIterator data(Tensor::zeros({4, 1}), Tensor::of({1, -2, 0, 2}, {4, 1}), 3);
  const auto scores = prices->evaluateRegression(data);
  CHECK(textOf(scores.meanSquaredError(), scores.rootMeanSquaredError(0), scores.meanAbsoluteError()) ==
        "225 15 12.5");
  CHECK(scores.r2() == doctest::Approx(1 - 900.0 / 875));  // deviations from 102.5
  CHECK(scores.summary() == R"(4 examples, 1 column: R2 -0.0286, RMSE 15, MAE 12.5, in the column's own units

    column          MSE         RMSE          MAE         R2  correlation
     price          225           15         12.5    -0.0286       0.0000
)");
  CHECK(prices->evaluateTask(data).line() == "R2 -0.0286, RMSE 15, MAE 12.5");
  CHECK(prices->evaluateTask(data).loss() == 9.0 / 4);  // the network's own, of the scaled target
}

TEST_CASE("an evaluation names classes, by the model's description or else the data's, and several labels") {
  const auto kinds = zeros({.classes = 2});  // of equal outputs the first class
  auto data = zeroExamples(3);
  CHECK(kinds->evaluate(data).classNames().empty());
  data.setDescription({.classes = {"cat", "dog"}});
  CHECK(kinds->evaluate(data).classNames() == Names{"cat", "dog"});
  auto wrapper = ParallelWrapper::Builder(*kinds).workers(2).pinThreads(false).build();
  CHECK(wrapper.evaluate(data).classNames() == Names{"cat", "dog"});
  data.setDescription({.classes = {"cat", "dog", "cow"}});  // of other data
  CHECK(kinds->evaluate(data).classNames().empty());
  data.setDescription({});
  kinds->setInputDescription({.columns = {{.name = "x"}}, .classes = {"long-haired", "Überrascht"}});
  CHECK(kinds->evaluate(data).summary() == R"(3 examples, 2 classes: accuracy 1.0000, loss 0.6931

        class   examples  precision     recall         F1
0 long-haired          3     1.0000     1.0000     1.0000
 1 Überrascht          0     0.0000     0.0000     0.0000
   macro mean          3     1.0000     1.0000     1.0000

confusion matrix (rows: true class, columns: predicted class)
              0 1
0 long-haired 3 0
 1 Überrascht 0 0
)");

  const auto several =
      zeros({.classes = 2, .loss = Loss::BinaryCrossEntropy, .activation = Activation::Sigmoid});
  several->setInputDescription({.classes = {"in German", "über Kunst"}});
  InMemoryDataSetIterator texts(Tensor::zeros({2, 1}), Tensor::of({1, 0, 0, 0}, {2, 2}), 2);
  // All predictions are 0.5: no label is predicted.
  CHECK(several->evaluateBinary(texts).summary() ==
        R"(2 examples, 2 labels: accuracy 0.7500, AUC 0.5000, all labels right 0.5000

     label  positives   accuracy  precision     recall         F1        AUC         AP
 in German          1     0.5000     0.0000     0.0000     0.0000     0.5000     0.5000
über Kunst          0     1.0000     0.0000     0.0000     0.0000  undefined  undefined
      mean                0.7500     0.0000     0.0000     0.0000     0.5000     0.5000
)");
  BinaryEvaluation other(2);
  CHECK_REFUSED(other.setLabelNames({"one"}), "evaluation: 1 name for 2 labels");
}

}  // namespace
}  // namespace muster::test
