#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "muster/core/base/error.h"
#include "muster/core/eval/evaluation.h"
#include "tests/support/fake_trainer.h"
#include "tests/support/list_iterator.h"
#include "tests/support/thrown.h"

namespace muster {
namespace {

Batch batchOf(std::initializer_list<float> predictions, std::initializer_list<float> oneHot,
              std::int64_t rows) {
  const auto columns = static_cast<std::int64_t>(predictions.size()) / rows;
  Batch batch;
  batch.features.push_back({"features", Tensor::of(predictions, {rows, columns})});
  batch.labels.push_back({"labels", Tensor::of(oneHot, {rows, columns})});
  return batch;
}

}  // namespace

TEST_CASE("evaluate() runs a model over all batches, from the first one") {
  test::EchoModel model;  // predicts its input
  test::ListIterator data({batchOf({1, 0, 0, 1}, {1, 0, 1, 0}, 2), batchOf({0, 1}, {0, 1}, 1)});
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
  Batch batch = batchOf({1, 0, 0, 1}, {1, 0, 1, 0}, 2);
  batch.masks.push_back({"mask", Tensor::of({1, 0}, {2})});
  test::ListIterator data({batch});
  CHECK(evaluate(model, data).confusionMatrix() == std::vector<std::int64_t>{1, 0, 0, 0});
}

TEST_CASE("each step of a sequence counts; padding is masked by the features' mask or by one of the labels") {
  test::EchoModel model;
  Batch batch;  // two sequences of three steps, two classes
  batch.features.push_back({"features", Tensor::of({1, 0, 0, 1, 1, 0, /**/ 0, 1, 1, 0, 1, 0}, {2, 3, 2})});
  Tensor labels = Tensor::empty({2, 3}, DType::Int64);
  std::ranges::copy(std::array<std::int64_t, 6>{0, 0, 0, 1, 1, -1}, labels.data<std::int64_t>());
  batch.labels.push_back({"labels", labels});
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
  Batch unlabelled = batchOf({1, 0}, {1, 0}, 1);
  unlabelled.labels.clear();
  CHECK(problem({unlabelled}) == "evaluate: a batch has no labels");
  Batch picture;
  picture.features.push_back({"features", Tensor::zeros({1, 1, 2, 2})});
  picture.labels.push_back({"labels", Tensor::zeros({1, 1, 2, 2})});
  CHECK(problem({picture}) ==
        "evaluate: expected predictions [N, classes] or [N, T, classes], got float32 [1, 1, 2, 2] on cpu");
}

}  // namespace muster
