#include "muster/parallel/training/first_batch.h"

#include "muster/parallel/runtime/activity.h"
#include "tests/support/thrown.h"
#include "tests/support/toy_data.h"
#include "tests/support/toy_model.h"

using namespace muster;
using namespace muster::test;

TEST_CASE("the first batch that is not trained is read, with the position of its first example") {
  ToyModel model;
  Activity caller;
  ToyIterator data({{{2, 4}}, {{6}}});
  Batch first;
  CHECK(prepareModel(model, data, caller, /*epoch=*/3, {.nextBatch = 1, .examples = 2}, first));
  CHECK(data.resets == std::vector<std::int64_t>{3});
  CHECK(first.features.front().value.data<float>()[0] == 6);
  CHECK(first.stamp.firstExample == 2);
  CHECK_FALSE(prepareModel(model, data, caller, 3, {.nextBatch = 2, .examples = 3}, first));
}

TEST_CASE("an iterator that fails before a training begins is named, with the epoch") {
  ToyModel model;
  Activity caller;
  auto data = ToyIterator::ofValues({1});
  data.onReset = [](std::int64_t) { throw std::runtime_error("no disk"); };
  Batch first;
  CHECK(thrown<TrainingError>([&] { prepareModel(model, data, caller, 3, {}, first); }) ==
        "the data iterator failed in reset to epoch 4: no disk");
}
