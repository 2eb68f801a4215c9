#include "muster/datasets/predictions.h"

#include "muster/core/eval/non_finite_prediction.h"
#include "muster/datasets/prediction_csv.h"
#include "tests/support/test.h"

using namespace muster;
using muster::test::thrown;

namespace {

using Names = std::vector<std::string>;

Tensor rows(std::int64_t width, const std::vector<float>& values) {
  return Tensor::of(values, {std::ssize(values) / width, width});
}

}  // namespace

TEST_CASE(
    "the largest of several outputs names the class; a single one is the probability of the second class") {
  const InputDescription kinds{.classes = {"cat", "dog, big", "owl"}}, two{.classes = {"no", "yes"}};
  const auto predictions = namedOutputs(kinds, rows(3, {0.2f, 0.5f, 0.3f, 0.9f, 0, 0.1f}));
  CHECK(predictions.names == kinds.classes);
  CHECK(predictions.classes == Names{"dog, big", "cat"});
  CHECK(predictions.classOf(1) == "cat");
  CHECK(csvHeader(predictions) ==
        "prediction,probability,probability of cat,\"probability of dog, big\",probability of owl");
  CHECK(csvRow(predictions, 0) == "\"dog, big\",0.5,0.2,0.5,0.3");
  CHECK(predictions.valueOf(0, 2) == 0.3f);
  const auto single = namedOutputs(two, rows(1, {0.25f, 0.5f, 0.75f}));
  CHECK(single.classes == Names{"no", "no", "yes"});  // above one half
  CHECK(std::ranges::equal(single.values.span<float>(), std::array{0.75f, 0.25f, 0.5f, 0.5f, 0.25f, 0.75f}));
}

TEST_CASE("labels have a probability each and no class; a regression's numbers are in their own units") {
  const InputDescription labels{.classes = {"fast", "loud"}};
  const auto each = namedOutputs(labels, rows(2, {0.9f, 0.8f}), Task::Labels);
  CHECK(each.classes.empty());
  CHECK(each.valueOf(0, 1) == 0.8f);
  const InputDescription price{.targets = {{.name = "price", .mean = 100, .scale = 8}}};
  const auto numbers = namedOutputs(price, rows(1, {0.5f, -1}), Task::Regression);
  CHECK(numbers.names == Names{"price"});
  CHECK(numbers.classes.empty());
  CHECK(numbers.numbers == std::vector<double>{104, 92});
  CHECK(numbers.valueOf(1) == 92);
  CHECK(csvRow(numbers, 0) == "104");
  const InputDescription two{.targets = {{"sales", 100000238, 4.5}, {"z", -1, 0.5}}};
  const auto sales = namedOutputs(two, rows(2, {0, 2, 0.5f, 0}), Task::Regression);
  CHECK(sales.numbers == std::vector<double>{100000238, 0, 100000240.25, -1});
  CHECK(csvRow(sales, 0) == "100000238,0");
  CHECK(csvRow(sales, 1) == "100000240.25,-1");
  CHECK(thrown<InvalidArgument>([&] { numbers.classOf(0); }) ==
        "predictions: a regression has no classes; valueOf has its numbers");
}

TEST_CASE("an output that is NaN or infinite names no class and no number") {
  const InputDescription kinds{.classes = {"cat", "dog"}}, price{.targets = {{.name = "price"}}};
  const auto refusal = [](const InputDescription& described, Task task, const Tensor& outputs) {
    return thrown<NonFinitePrediction>([&] { namedOutputs(described, outputs, task); });
  };
  const float nan = test::kNan, infinity = test::kInfinity;
  for (const auto task : {Task::Classification, Task::Labels})
    CHECK(refusal(kinds, task, rows(2, {0.5f, 0.5f, nan, 0})) ==
          "predict: a prediction for example 1 is NaN");
  CHECK(refusal(kinds, Task::Classification, rows(1, {nan})) == "predict: a prediction for example 0 is NaN");
  CHECK(refusal(price, Task::Regression, rows(1, {1, 2, infinity})) ==
        "predict: a prediction for example 2 is infinite");
}

TEST_CASE("what does not exist is refused") {
  CHECK_REFUSED(
      namedOutputs({}, rows(1, {0.5f})),
      "the model's output has no names: its description has neither classes nor numbers to predict");
  CHECK_REFUSED(
      namedOutputs({}, rows(2, {0.5f, 1})),
      "the model's outputs have no names: its description has neither classes nor numbers to predict");
  const InputDescription kinds{.classes = {"cat", "dog", "owl"}};
  CHECK_THROWS_AS(namedOutputs(kinds, rows(2, {1, 0})), InvalidArgument);
  const auto one = namedOutputs(kinds, rows(3, {1, 0, 0}));
  CHECK_REFUSED(one.classOf(1), "predictions: there is no row 1, only 1 row");
  CHECK_REFUSED(one.valueOf(0, 3), "predictions: there is no row 0 with a column 3 in 1 row of 3");
}

TEST_CASE("columns to keep are named as in CSV, each once, and none as a column of the output") {
  const auto table = parseTable("id,\"name, first\",prediction\n7,\"A, B\",red\n", {}, "f.csv");
  for (const Names& keep : {Names{"id,\"name, first\""}, {"id", "name, first"}}) {
    const KeptColumns kept(table, keep);
    CHECK(kept.header("prediction,probability") == "id,\"name, first\",prediction,probability");
    CHECK(kept.row(0) == "7,\"A, B\",");
  }
  CHECK(KeptColumns(table, {}).header("prediction") == "prediction");
  const auto refused = [&](const Names& keep) {
    return thrown<InvalidArgument>([&] { KeptColumns(table, keep).header("prediction"); });
  };
  CHECK(refused({"id,"}) == "columns to keep, \"id,\": one of them has no name");
  CHECK(refused({"id,prediction", "id"}) == "columns to keep: id is named twice");
  CHECK(refused({"prediction"}) ==
        "columns to keep: the output has a column prediction of its own; keep others, or rename it in the "
        "table");
  CHECK(thrown<FileError>([&] { KeptColumns(table, {"idd"}); }) ==
        "f.csv: has no column \"idd\"; the nearest of its 3 is id");
}
