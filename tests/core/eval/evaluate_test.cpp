#include "muster/core/eval/evaluation.h"
#include "tests/support/batch_of.h"
#include "tests/support/fake_trainer.h"
#include "tests/support/list_iterator.h"
#include "tests/support/test.h"

namespace muster {
namespace {

/// Of two classes.
Batch pairs(std::initializer_list<float> predictions, std::initializer_list<float> oneHot) {
  const auto rows = static_cast<std::int64_t>(predictions.size()) / 2;
  return test::batchOf(Tensor::of(predictions, {rows, 2}), Tensor::of(oneHot, {rows, 2}));
}

}  // namespace

TEST_CASE("evaluate() runs a model over all batches, from the first one") {
  test::EchoModel model;  // predicts its input
  test::ListIterator data({pairs({1, 0, 0, 1}, {1, 0, 1, 0}), pairs({0, 1}, {0, 1})});
  Batch skipped;
  data.next(skipped);  // all batches are evaluated, whatever the iterator's position
  for (int run = 0; run < 2; ++run) {
    const Evaluation e = evaluate(model, data);
    CHECK(e.confusionMatrix() == std::vector<std::int64_t>{1, 1, 0, 1});
    CHECK(data.epochs.back() == 0);
  }
}

TEST_CASE("evaluate() respects masks") {
  test::EchoModel model;
  Batch batch = pairs({1, 0, 0, 1}, {1, 0, 1, 0});
  batch.masks.push_back({"mask", Tensor::of({1, 0}, {2})});
  test::ListIterator data({batch});
  CHECK(evaluate(model, data).confusionMatrix() == std::vector<std::int64_t>{1, 0, 0, 0});
}

TEST_CASE("each step of a sequence counts; padding is masked by the features' mask or by one of the labels") {
  test::EchoModel model;
  // Two sequences of three steps, two classes.
  Batch batch = test::batchOf(Tensor::of({1, 0, 0, 1, 1, 0, /**/ 0, 1, 1, 0, 1, 0}, {2, 3, 2}),
                              test::integers({0, 0, 0, 1, 1, -1}, {2, 3}));
  batch.masks.push_back({"features", Tensor::of({1, 1, 1, /**/ 1, 1, 0}, {2, 3})});
  const auto matrix = [&] {
    test::ListIterator data({batch});
    return evaluate(model, data).confusionMatrix();
  };
  CHECK(matrix() == std::vector<std::int64_t>{2, 1, 1, 1});
  batch.masks.push_back({"labels", Tensor::of({0, 0, 1, /**/ 1, 0, 0}, {2, 3})});
  CHECK(matrix() == std::vector<std::int64_t>{1, 0, 0, 1});
}

TEST_CASE("models and data that cannot be evaluated are refused") {
  test::EchoModel model;
  const auto problem = [&](std::vector<Batch> batches) {
    test::ListIterator data(std::move(batches));
    return test::thrown<InvalidArgument>([&] { evaluate(model, data); });
  };
  CHECK(problem({}) == "evaluate: the data set has no batches");
  Batch unlabelled = pairs({1, 0}, {1, 0});
  unlabelled.labels.clear();
  CHECK(problem({unlabelled}) == "evaluate: a batch has no labels");
  const Tensor picture = Tensor::zeros({1, 1, 2, 2});
  CHECK(problem({test::batchOf(picture, picture)}) ==
        "evaluate: expected predictions [N, classes] or [N, T, classes], got float32 [1, 1, 2, 2] on cpu");
}

}  // namespace muster
