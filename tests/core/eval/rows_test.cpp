#include "muster/core/eval/detail/rows.h"

#include "muster/core/eval/detail/label_width.h"
#include "muster/core/eval/non_finite_prediction.h"
#include "tests/support/test.h"

namespace muster::detail {
namespace {

TEST_CASE("a row's place is its example, and its step in a sequence") {
  CHECK(placeName(3, {5}) == "example 3");
  CHECK(placeName(0, {2, 4}) == "example 0, step 0");
  CHECK(placeName(7, {2, 4}) == "example 1, step 3");
}

TEST_CASE("rows of predictions, for examples and for steps") {
  Tensor steps = Tensor::zeros({2, 2, 3});
  for (int i = 0; i < 12; ++i) steps.data<float>()[i] = static_cast<float>(i);
  CHECK(std::ranges::equal(rowOf(steps, 2), std::array{6.0f, 7.0f, 8.0f}));
  CHECK(requireRows(steps, steps, {}, 3) == Shape{2, 2});
  CHECK(requireRows(Tensor::zeros({4, 1}), Tensor::zeros({4, 1}), Tensor::zeros({4}), 1) == Shape{4});
}

TEST_CASE("a mask leaves out the rows where it is zero") {
  Tensor mask = Tensor::zeros({3});
  mask.data<float>()[1] = 0.5f;
  CHECK(isMasked(mask, 0));
  CHECK_FALSE(isMasked(mask, 1));
  CHECK_FALSE(isMasked({}, 0));
}

TEST_CASE("tensors that are no rows of so many columns, or do not fit each other, are refused") {
  const Tensor rows = Tensor::zeros({4, 2}), whole = Tensor::zeros({4, 2}, DType::Int64);
  for (const Tensor& wrong :
       {Tensor(), whole, Tensor::zeros({4, 3}), Tensor::zeros({2}), Tensor::zeros({1, 2, 2, 2})})
    CHECK_THROWS_AS(requireRows(wrong, wrong, {}, 2), InvalidArgument);
  CHECK_REFUSED(requireRows(rows, Tensor::zeros({4, 1}), {}, 2),
                "evaluation: expected float32 labels [4, 2], as the predictions, got float32 [4, 1] on cpu");
  CHECK_REFUSED(requireRows(rows, rows, Tensor::zeros({3}), 2),
                "evaluation: expected a float32 mask [4], got float32 [3] on cpu");
  CHECK_REFUSED(requireMask(Tensor::zeros({4}, DType::Int64), {4}),
                "evaluation: expected a float32 mask [4], got int64 [4] on cpu");
}

TEST_CASE("numbers that are not finite are refused with their place") {
  const std::array nan{1.0f, test::kNan};
  CHECK_NOTHROW(requireFinitePredictions(std::array{1.0f, 2.0f}, 0, {1}));
  CHECK(test::thrown<NonFinitePrediction>([&] { requireFinitePredictions(nan, 3, {5}); }) ==
        "evaluation: a prediction for example 3 is NaN");
  CHECK_REFUSED(requireFiniteLabels(std::array{-test::kInfinity}, 3, Shape{2, 2}),
                "evaluation: a label of example 1, step 1 is infinite");
  CHECK(test::thrown<NonFinitePrediction>([&] {
          requireFinitePredictions(nan, 3, {5}, "predict", [] { return " (line 5)"; });
        }) == "predict: a prediction for example 3 is NaN (line 5)");
}

TEST_CASE("a remark names the value of an example's features that is not finite, or the largest one") {
  const Tensor features = Tensor::of({1, -9, 3, /**/ 1e9f, -test::kNan, 3}, {2, 3});
  CHECK(featuresRemark(features, 0) == "; the largest of its features is -9, in column 1, counted from 0");
  CHECK(featuresRemark(features, 1) == "; its features hold nan in column 1, counted from 0");
  const std::vector<std::string> names{"a", "size", "c"};
  CHECK(featuresRemark(features, 1, names) == "; its features hold nan in size");
  CHECK(featuresRemark(features.reshape({1, 2, 3}), 0, names) ==
        "; its features hold nan in element [1, 1], counted from 0");
  CHECK(featuresRemark(Tensor::zeros({2, 3}, DType::UInt8), 0).empty());
}

TEST_CASE("a table's first column is as wide as its longest label in characters, at least ten") {
  CHECK(labelWidth({}) == 10);
  CHECK(labelWidth(std::array<std::string, 2>{"a", "twelve chars"}) == 12);
  CHECK(labelWidth(std::array<std::string, 1>{"ääääääää"}) == 10);
}

}  // namespace
}  // namespace muster::detail
