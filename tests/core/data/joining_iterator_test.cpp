#include "muster/core/data/joining_iterator.h"

#include "muster/core/data/in_memory.h"
#include "tests/support/list_iterator.h"
#include "tests/support/test.h"

using namespace muster;

namespace {

/// Ten examples: example i has features {i} and label i mod 3.
InMemoryDataSetIterator tenExamples(std::int64_t batch, MemoryPlacement placement = MemoryPlacement::Host) {
  Tensor features = Tensor::empty({10, 1}), labels = Tensor::empty({10}, DType::Int64);
  for (std::int64_t i = 0; i < 10; ++i) {
    features.data<float>()[i] = static_cast<float>(i);
    labels.data<std::int64_t>()[i] = i % 3;
  }
  return InMemoryDataSetIterator(features, labels, batch, std::nullopt, placement);
}

Batch batchOf(const Shape& features, bool masked) {
  Batch batch;
  Batch::ensure(batch.features, "x", features);
  Batch::ensure(batch.labels, "y", {features[0]}, DType::Int64);
  if (masked) Batch::ensure(batch.masks, "mask", {features[0]}).span<float>()[0] = 0.5f;
  return batch;
}

}  // namespace

TEST_CASE("a joining iterator joins batches in order, and the last of an epoch may be of fewer") {
  for (const auto placement : {MemoryPlacement::Host, MemoryPlacement::Device}) {
    auto data = tenExamples(2, placement);
    JoiningIterator joined(data, 3);
    CHECK(joined.examples() == 10);
    CHECK(joined.batchSize() == 6);
    CHECK(joined.batchesPerEpoch() == 2);
    Batch batch;
    for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
      joined.reset(epoch);
      std::vector<float> seen;
      std::vector<std::int64_t> sizes;
      while (joined.next(batch)) {
        sizes.push_back(batch.examples());
        CHECK(batch.namesRows() == (placement == MemoryPlacement::Device));
        Batch whole;
        batch.gatherInto(whole);
        for (std::int64_t i = 0; i < batch.examples(); ++i) {
          seen.push_back(whole.features[0].value.data<float>()[i]);
          CHECK(whole.labels[0].value.data<std::int64_t>()[i] == static_cast<std::int64_t>(seen.back()) % 3);
        }
      }
      CHECK(sizes == std::vector<std::int64_t>{6, 4});
      CHECK(seen == std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
      CHECK_FALSE(joined.next(batch));
    }
  }
}

TEST_CASE("a joining iterator skips whole joined batches") {
  auto data = tenExamples(2);
  JoiningIterator joined(data, 2);
  joined.reset(0);
  CHECK(joined.skip(2) == 8);
  Batch batch;
  REQUIRE(joined.next(batch));
  CHECK(batch.examples() == 2);
  CHECK(batch.features[0].value.data<float>()[0] == 8);
}

TEST_CASE("a joining iterator joins masks, and refuses batches that do not fit") {
  test::ListIterator masked({batchOf({2, 3}, true), batchOf({1, 3}, true)});
  JoiningIterator joined(masked, 2);
  Batch batch;
  joined.reset(0);
  REQUIRE(joined.next(batch));
  REQUIRE(batch.masks.size() == 1);
  CHECK(batch.masks[0].value.shape() == Shape{3});
  CHECK(batch.masks[0].value.data<float>()[2] == 0.5f);

  const auto problem = [](std::vector<Batch> batches) {
    test::ListIterator list(std::move(batches));
    JoiningIterator both(list, 2);
    Batch to;
    both.reset(0);
    return test::thrown<InvalidArgument>([&] { both.next(to); });
  };
  CHECK(problem({batchOf({2, 3}, true), batchOf({2, 3}, false)}) ==
        "accumulate: batches cannot be joined: one has 1 tensor where another has 0");
  CHECK(problem({batchOf({2, 3}, false), batchOf({2, 4}, false)}) ==
        "accumulate: batches cannot be joined: one has x float32 [2, 3] on cpu and another x float32 [2, 4] "
        "on cpu");
  CHECK_REFUSED(JoiningIterator(masked, 0), "accumulate: a step takes at least 1 batch, got 0");
}

TEST_CASE("a joining iterator skips all batches if a number from a file would overflow") {
  test::ListIterator list({batchOf({2, 3}, false), batchOf({1, 3}, false), batchOf({2, 3}, false)});
  JoiningIterator joined(list, 32);
  joined.reset(0);
  CHECK(joined.skip((std::int64_t{1} << 59) + 1) == 5);
  Batch batch;
  CHECK_FALSE(joined.next(batch));
}
