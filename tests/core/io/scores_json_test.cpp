#include "muster/core/io/scores_json.h"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "muster/core/io/json_value.h"
#include "tests/support/batch_of.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using doctest::Approx;

double number(const boost::json::value& in, const char* name) {
  return in.at(name).to_number<double>();
}

TEST_CASE("a classification's scores have means, classes by name and the confusion matrix") {
  AnyEvaluation e(Task::Classification, 2);
  // Three cats, one of them taken for a dog, and a dog.
  e.add(Tensor::of({0.75f, 0.25f, 0.75f, 0.25f, 0.25f, 0.75f, 0.25f, 0.75f}, {4, 2}),
        test::integers({0, 0, 0, 1}));
  e.describe({.classes = {"cat", "dog"}});
  const auto json = parseJson(scoresJson(e));
  CHECK(json.at("task") == "classification");
  CHECK(number(json, "examples") == 4);
  CHECK(number(json, "accuracy") == 0.75);
  // Precision 1 and 1/2, recall 2/3 and 1, so F1 0.8 and 2/3.
  CHECK(number(json, "precision") == Approx(0.75));
  CHECK(number(json, "recall") == Approx(5 / 6.));
  CHECK(number(json, "f1") == Approx((0.8 + 2 / 3.) / 2));
  // -(3 ln 0.75 + ln 0.25) / 4
  CHECK(number(json, "loss") == Approx(0.562335).epsilon(1e-5));
  const auto& cat = json.at("classes").at(0);
  CHECK(cat.at("name") == "cat");
  CHECK(number(cat, "examples") == 3);
  CHECK(number(cat, "precision") == 1);
  CHECK(number(cat, "recall") == Approx(2 / 3.));
  CHECK(cat.at("predictedAs") == boost::json::value{2.0, 1.0});
}

TEST_CASE("a regression has its errors by column") {
  AnyEvaluation e(Task::Regression, 2);
  e.add(Tensor::of({1, 5, 3, 7}, {2, 2}), Tensor::of({1, 6, 2, 6}, {2, 2}));
  const auto json = parseJson(scoresJson(e));
  CHECK_FALSE(json.as_object().contains("loss"));  // it is not known
  const auto& first = json.at("columns").at(0);
  CHECK(number(first, "mse") == 0.5);
  CHECK(number(first, "mae") == 0.5);
  CHECK(number(first, "r2") == Approx(-1));  // 1 - 1 / 0.5
  CHECK(number(first, "correlation") == Approx(1));
  CHECK(number(json.at("columns").at(1), "mae") == 1);
}

TEST_CASE("labels have their scores each, without those that are no number") {
  AnyEvaluation e(Task::Labels, 2);
  // No example has the second label: it has no ROC curve.
  e.add(Tensor::of({0.75f, 0.25f, 0.25f, 0.75f}, {2, 2}), Tensor::of({1, 0, 0, 0}, {2, 2}));
  const auto json = parseJson(scoresJson(e));
  CHECK(number(json.at("labels").at(0), "auc") == 1);
  CHECK(number(json.at("labels").at(1), "accuracy") == 0.5);
  CHECK_FALSE(json.at("labels").at(1).as_object().contains("auc"));
  CHECK_FALSE(json.at("labels").at(1).as_object().contains("averagePrecision"));
}

}  // namespace
}  // namespace muster
