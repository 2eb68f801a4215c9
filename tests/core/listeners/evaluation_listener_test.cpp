#include "muster/core/listeners/evaluation_listener.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "muster/core/base/error.h"
#include "tests/support/fake_trainer.h"
#include "tests/support/list_iterator.h"

namespace muster {

TEST_CASE("the model is evaluated every N epochs") {
  Batch batch;  // two of four right; F1 of class 0 is 2/3, of class 1 is 0
  batch.features.push_back({"features", Tensor::of({1, 0, 1, 0, 1, 0, 0, 1}, {4, 2})});
  batch.labels.push_back({"labels", Tensor::of({1, 0, 1, 0, 0, 1, 1, 0}, {4, 2})});
  test::ListIterator data({batch});
  test::EchoModel model;
  test::FakeTrainer trainer(model);
  std::vector<std::string> lines;
  EvaluationListener listener(data, 2, [&](std::string_view line) { lines.emplace_back(line); });
  for (std::int64_t epoch = 0; epoch < 5; ++epoch) listener.onEpochEnd({trainer, epoch, 0, 0, 0});
  CHECK(lines == std::vector<std::string>{"epoch 2: accuracy 0.5000, F1 0.3333 on 4 examples",
                                          "epoch 4: accuracy 0.5000, F1 0.3333 on 4 examples"});
  REQUIRE(listener.results().size() == 2);
  CHECK(listener.results()[1].epoch == 4);
  CHECK(listener.results()[1].evaluation.count(1, 0) == 1);
  CHECK_THROWS_AS(EvaluationListener(data, 0), InvalidArgument);
}

}  // namespace muster
