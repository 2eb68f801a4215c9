#include "muster/core/eval/evaluation.h"
#include "muster/core/eval/non_finite_prediction.h"
#include "tests/support/batch_of.h"
#include "tests/support/fake_trainer.h"
#include "tests/support/list_iterator.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

/// Of two classes.
Batch pairs(std::initializer_list<float> predictions, std::initializer_list<float> oneHot) {
  const auto rows = static_cast<std::int64_t>(predictions.size()) / 2;
  return batchOf(Tensor::of(predictions, {rows, 2}), Tensor::of(oneHot, {rows, 2}));
}

/// By a model that predicts its input.
std::vector<std::int64_t> matrixOf(std::vector<Batch> batches) {
  EchoModel model;
  ListIterator data(std::move(batches));
  return evaluate(model, data).confusionMatrix();
}

TEST_CASE("evaluate() runs a model over all batches, from the first one") {
  EchoModel model;
  ListIterator data({pairs({1, 0, 0, 1}, {1, 0, 1, 0}), pairs({0, 1}, {0, 1})});
  Batch skipped;
  data.next(skipped);  // all batches are evaluated, whatever the iterator's position
  for (int run = 0; run < 2; ++run) {
    CHECK(evaluate(model, data).confusionMatrix() == std::vector<std::int64_t>{1, 1, 0, 1});
    CHECK(data.epochs.back() == 0);
  }
}

TEST_CASE("each step of a sequence counts; padding is masked by the features' mask or by one of the labels") {
  // Two sequences of three steps, two classes.
  Batch batch = batchOf(Tensor::of({1, 0, 0, 1, 1, 0, /**/ 0, 1, 1, 0, 1, 0}, {2, 3, 2}),
                        integers({0, 0, 0, 1, 1, -1}, {2, 3}));
  batch.masks.push_back({"features", Tensor::of({1, 1, 1, /**/ 1, 1, 0}, {2, 3})});
  CHECK(matrixOf({batch}) == std::vector<std::int64_t>{2, 1, 1, 1});
  batch.masks.push_back({"labels", Tensor::of({0, 0, 1, /**/ 1, 0, 0}, {2, 3})});
  CHECK(matrixOf({batch}) == std::vector<std::int64_t>{1, 0, 0, 1});
}

TEST_CASE("a prediction that is NaN is named by its place in the data, not in its batch") {
  const auto refusal = [](std::vector<Batch> batches) {
    return thrown<NonFinitePrediction>([&] { matrixOf(std::move(batches)); });
  };
  CHECK(refusal({pairs({1, 0, 0, 1}, {1, 0, 1, 0}), pairs({0, 1, 0, kNan}, {0, 1, 0, 1})}) ==
        "evaluation: a prediction for example 3 is NaN; its features hold nan in column 1, counted from 0");
  Batch steps = batchOf(Tensor::of({1, 0, kNan, 1, 0, kNan}, {1, 3, 2}), integers({0, 0, 1}, {1, 3}));
  steps.masks.push_back({"features", Tensor::of({1, 0, 1}, {1, 3})});
  CHECK(refusal({pairs({1, 0, 0, 1}, {1, 0, 1, 0}), steps})
            .starts_with("evaluation: a prediction for example 2, step 2 is NaN"));
}

TEST_CASE("a label that is out of range is named with its batch") {
  CHECK_CONTAINS(thrown<InvalidArgument>([&] {
                   matrixOf({pairs({1, 0}, {1, 0}), batchOf(Tensor::zeros({1, 2}), integers({7}))});
                 }),
                 "evaluate: batch 2: ");
}

TEST_CASE("models and data that cannot be evaluated are refused") {
  CHECK_REFUSED(matrixOf({}), "evaluate: the data set has no batches");
  Batch unlabelled = pairs({1, 0}, {1, 0});
  unlabelled.labels.clear();
  CHECK_REFUSED(matrixOf({unlabelled}), "evaluate: batch 1: evaluate: a batch has no labels");
  const Tensor picture = Tensor::zeros({1, 1, 2, 2});
  CHECK_REFUSED(matrixOf({batchOf(picture, picture)}),
                "evaluate: batch 1: evaluate: expected predictions [N, classes] or [N, T, classes], got "
                "float32 [1, 1, 2, 2] on cpu");
}

}  // namespace
}  // namespace muster::test
