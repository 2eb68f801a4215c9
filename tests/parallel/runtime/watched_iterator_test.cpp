#include "muster/parallel/runtime/watched_iterator.h"

#include "tests/support/thrown.h"
#include "tests/support/toy_data.h"

using namespace muster;
using namespace muster::test;

TEST_CASE("the call that has failed is named: a reset, or the batch") {
  ToyIterator data = ToyIterator::ofValues({1, 2, 3});
  Activity activity;
  WatchedIterator watched(data, activity);
  data.onReset = [](std::int64_t epoch) {
    if (epoch == 4) throw std::runtime_error("gone");
  };
  CHECK_THROWS(watched.reset(4));
  CHECK(watched.failure() == "the data iterator failed in reset to epoch 5");

  data.onNext = [](std::int64_t, std::int64_t batch) {
    if (batch == 2) throw std::runtime_error("gone");
  };
  watched.reset(1);
  Batch batch;
  CHECK(watched.next(batch));
  CHECK(watched.next(batch));
  CHECK_THROWS(watched.next(batch));
  CHECK(watched.failure() ==
        "the data iterator failed at " + BatchStamp{.sequence = 2, .epoch = 1}.toString());
  CHECK(activity.kind() == Activity::Kind::InIterator);
}

TEST_CASE("an epoch is continued after the batches that are trained") {
  ToyIterator data = ToyIterator::ofValues({1, 2, 3});
  Activity activity;
  WatchedIterator watched(data, activity);
  const EpochPosition begun{.nextBatch = 2, .examples = 2};
  CHECK(watched.reset(0, begun) == 2);  // one example a batch
  Batch batch;
  REQUIRE(watched.next(batch));
  CHECK(batch.features.front().value.data<float>()[0] == 3);
  CHECK_FALSE(watched.next(batch));
}

TEST_CASE("a batch without examples is refused, and one of another node is skipped") {
  ToyIterator data({{.values = {1, 2}}, {.values = {}}});
  Activity activity;
  WatchedIterator watched(data, activity);
  watched.reset(0);
  CHECK(watched.skipOne(1) == 2);
  Batch batch;
  CHECK_REFUSED(watched.next(batch), "the batch has no examples");
  CHECK(watched.skipOne(1) == 0);  // the epoch's end
}

TEST_CASE("a batch that was read before the epoch is given without the iterator") {
  Activity activity;
  for (const bool skipped : {false, true}) {
    CAPTURE(skipped);
    ToyIterator data = ToyIterator::ofValues({1, 2, 3});
    Batch first, batch;
    data.reset(4);
    REQUIRE(data.next(first));
    first.stamp.firstExample = 7;
    WatchedIterator watched(data, activity, &first);
    CHECK(watched.reset(4) == 7);
    if (skipped)
      CHECK(watched.skipOne(1) == 1);
    else
      REQUIRE(watched.next(batch));
    if (!skipped) CHECK(batch.features.front().value.data<float>()[0] == 1);
    REQUIRE(watched.next(batch));
    CHECK(batch.features.front().value.data<float>()[0] == 2);
    CHECK(data.resets == std::vector<std::int64_t>{4});
  }
  ToyIterator data = ToyIterator::ofValues({1});
  Batch first, batch;
  WatchedIterator watched(data, activity, &first);
  watched.reset(0);  // no call takes it
  CHECK(watched.reset(1) == 0);
  REQUIRE(watched.next(batch));
  CHECK(batch.features.front().value.data<float>()[0] == 1);
}
