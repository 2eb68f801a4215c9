#include "muster/core/io/scores_json.h"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "muster/core/io/json_value.h"
#include "tests/support/batch_of.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

/// The numbers of these names, to six digits.
template <typename... Names>
std::string numbersIn(const boost::json::value& in, const Names&... names) {
  return digitsOf(6, in.at(names).template to_number<double>()...);
}

TEST_CASE("a classification's scores have means, classes by name and the confusion matrix") {
  AnyEvaluation e(Task::Classification, 2);
  // Three cats, one of them taken for a dog, and a dog.
  e.add(Tensor::of({0.75f, 0.25f, 0.75f, 0.25f, 0.25f, 0.75f, 0.25f, 0.75f}, {4, 2}), integers({0, 0, 0, 1}));
  e.describe({.classes = {"cat", "dog"}});
  const auto json = parseJson(scoresJson(e));
  CHECK(json.at("task") == "classification");
  // Precision 1 and 1/2, recall 2/3 and 1, so F1 0.8 and 2/3.
  CHECK(numbersIn(json, "examples", "accuracy", "precision", "recall", "f1") ==
        digitsOf(6, 4, 0.75, 0.75, 5 / 6., (0.8 + 2 / 3.) / 2));
  CHECK(numbersIn(json, "loss") == digitsOf(6, -(3 * std::log(0.75) + std::log(0.25)) / 4));
  const auto& cat = json.at("classes").at(0);
  CHECK(cat.at("name") == "cat");
  CHECK(numbersIn(cat, "examples", "precision", "recall") == digitsOf(6, 3, 1, 2 / 3.));
  CHECK(cat.at("predictedAs") == boost::json::value{2.0, 1.0});
}

TEST_CASE("a regression has its errors by column") {
  AnyEvaluation e(Task::Regression, 2);
  e.add(Tensor::of({1, 5, 3, 7}, {2, 2}), Tensor::of({1, 6, 2, 6}, {2, 2}));
  const auto json = parseJson(scoresJson(e));
  CHECK_FALSE(json.as_object().contains("loss"));  // it is not known
  // R2 is 1 - 1 / 0.5.
  CHECK(numbersIn(json.at("columns").at(0), "mse", "mae", "r2", "correlation") == "0.5 0.5 -1 1");
  CHECK(numbersIn(json.at("columns").at(1), "mae") == "1");
}

TEST_CASE("labels have their scores each, without those that are no number") {
  AnyEvaluation e(Task::Labels, 2);
  // No example has the second label: it has no ROC curve.
  e.add(Tensor::of({0.75f, 0.25f, 0.25f, 0.75f}, {2, 2}), Tensor::of({1, 0, 0, 0}, {2, 2}));
  const auto json = parseJson(scoresJson(e));
  CHECK(numbersIn(json.at("labels").at(0), "auc") == "1");
  CHECK(numbersIn(json.at("labels").at(1), "accuracy") == "0.5");
  for (const char* none : {"auc", "averagePrecision"})
    CHECK_FALSE(json.at("labels").at(1).as_object().contains(none));
}

}  // namespace
}  // namespace muster::test
