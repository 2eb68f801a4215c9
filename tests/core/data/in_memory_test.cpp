#include "muster/core/data/in_memory.h"

#include <numeric>

#include "tests/core/data/batch_bytes.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

using Batches = std::vector<std::vector<std::int64_t>>;

/// Example i has the features (i, i + 0.5) and the class i.
struct Data {
  explicit Data(std::int64_t n) : features(Tensor::empty({n, 2})), labels(Tensor::empty({n}, DType::Int64)) {
    for (std::int64_t i = 0; i < 2 * n; ++i)
      features.data<float>()[i] = 0.5f * static_cast<float>(i / 2 * 2 + i % 2);
    std::iota(labels.data<std::int64_t>(), labels.data<std::int64_t>() + n, 0);
  }
  Tensor features, labels;
};

/// The classes of an epoch by batch; checks that features and labels match.
Batches batchesOf(DataSetIterator& iterator, std::int64_t epoch) {
  Batches batches;
  Batch batch;
  iterator.reset(epoch);
  while (iterator.next(batch)) {
    const auto labels = batch.labels.front().value.span<std::int64_t>();
    const auto features = batch.features.front().value.span<float>();
    for (std::size_t i = 0; i < labels.size(); ++i) {
      REQUIRE(features[2 * i] == static_cast<float>(labels[i]));
      REQUIRE(features[2 * i + 1] == static_cast<float>(labels[i]) + 0.5f);
    }
    batches.emplace_back(labels.begin(), labels.end());
  }
  return batches;
}

TEST_CASE("rows come in order, or by seed and epoch, and the last batch holds the remaining ones") {
  const Data data(5);
  InMemoryDataSetIterator iterator(data.features, data.labels, 2);
  for (const std::int64_t epoch : {0, 1}) CHECK(batchesOf(iterator, epoch) == Batches{{0, 1}, {2, 3}, {4}});
  const Data many(100);
  InMemoryDataSetIterator shuffled(many.features, many.labels, 100, 5),
      other(many.features, many.labels, 100, 5);
  CHECK(batchesOf(shuffled, 2) == batchesOf(other, 2));
  CHECK(batchesOf(shuffled, 2) != batchesOf(other, 3));
  CHECK(iterator.examples() == 5);
  CHECK(iterator.batchSize() == 2);
}

TEST_CASE("at the end of an epoch next() does not change the batch, and it never changes the stamp") {
  const Data data(2);
  InMemoryDataSetIterator iterator(data.features, data.labels, 2);
  Batch batch;
  batch.stamp.sequence = 42;
  CHECK(iterator.next(batch));
  CHECK(batch.stamp.sequence == 42);
  for (int i = 0; i < 2; ++i) CHECK_FALSE(iterator.next(batch));
  CHECK(batch.examples() == 2);
}

TEST_CASE("uint8 features and float targets are not converted") {
  const Tensor features = Tensor::zeros({3, 1, 2, 2}, DType::UInt8);
  std::iota(features.data<std::uint8_t>(), features.data<std::uint8_t>() + 12, std::uint8_t{0});
  InMemoryDataSetIterator iterator(features, Tensor::of({1, 2, 3, 4, 5, 6}, {3, 2}), 2);
  Batch batch;
  for (int i = 0; i < 2; ++i) REQUIRE(iterator.next(batch));
  const Tensor &last = batch.features.front().value, &targets = batch.labels.front().value;
  CHECK(textOf(last.toString(), targets.toString()) == "uint8 [1, 1, 2, 2] on cpu float32 [1, 2] on cpu");
  CHECK(textOf(last.data<std::uint8_t>()[0], targets.data<float>()[1]) == "8 6");
}

TEST_CASE("a recycled batch keeps its memory over epochs, through the smaller last batch") {
  const Data data(5);
  InMemoryDataSetIterator iterator(data.features, data.labels, 3);
  Batch batch;
  Batch::ensure(batch.masks, "mask", {3});
  iterator.next(batch);
  CHECK(batch.masks.empty());
  const void* memory = batch.features.front().value.raw();
  for (int epoch = 0; epoch < 3; ++epoch) {
    iterator.reset(epoch);
    while (iterator.next(batch)) CHECK(batch.features.front().value.raw() == memory);
  }
}

TEST_CASE("tensors that cannot make batches are refused by name") {
  const Data data(4), more(5);
  const auto refusal = [](Tensor features, Tensor labels, std::int64_t batch = 1) {
    return thrown<InvalidArgument>([&] { InMemoryDataSetIterator(features, labels, batch); });
  };
  CHECK_CONTAINS(refusal(data.features, more.labels), "[4, 2] on cpu and int64 [5]");
  CHECK_CONTAINS(refusal(data.features, data.labels, 0), "got 0");
  CHECK_CONTAINS(refusal(Tensor(), data.labels), "undefined");
  CHECK_CONTAINS(refusal(Tensor::zeros({4}, DType::Float64), data.labels), "float64");
  CHECK_CONTAINS(refusal(data.features, Tensor::zeros({4}, DType::UInt8)), "uint8 [4]");
}

TEST_CASE("batches of a resident data set hold row numbers that refer to the same examples") {
  const Data data(5);
  InMemoryDataSetIterator here(data.features, data.labels, 2, 3);
  InMemoryDataSetIterator there(data.features, data.labels, 2, 3, MemoryPlacement::Device);
  Batch numbers, rows, gathered;
  while (here.next(numbers)) {
    REQUIRE(there.next(rows));
    CHECK(rows.namesRows());
    CHECK_FALSE(numbers.namesRows());
    CHECK(rows.examples() == numbers.examples());
    CHECK((rows.features[0].value.dtype() == DType::Int64));
    rows.stamp.iteration = 7;
    rows.gatherInto(gathered);
    CHECK(gathered.stamp.iteration == 7);
    CHECK_FALSE(gathered.namesRows());
    CHECK(bytesOf(gathered) == bytesOf(numbers));
    Batch one;
    one.features.push_back({"features", rows.features[0].gathered()});
    one.labels.push_back({"labels", rows.labels[0].gathered()});
    CHECK(bytesOf(one) == bytesOf(numbers));
  }
  CHECK_FALSE(there.next(rows));
  // Another iterator that recycles the batch replaces the row numbers.
  here.reset(1);
  REQUIRE(here.next(rows));
  CHECK_FALSE(rows.namesRows());
}

TEST_CASE("rows are gathered into memory that no other tensor shares") {
  const Data data(3);
  Batch whole, into;
  whole.features.push_back({"features", data.features});
  whole.gatherInto(into);
  CHECK(into.features[0].value.raw() != data.features.raw());
  InMemoryDataSetIterator there(data.features, data.labels, 3, 3, MemoryPlacement::Device);
  Batch rows;
  REQUIRE(there.next(rows));
  rows.gatherInto(into);
  CHECK(data.features.data<float>()[0] == 0);
}

TEST_CASE("on the CPU a resident tensor shares the original's memory") {
  const Data data(3);
  CHECK(ResidentTensor(data.features).on(Device::cpu()).raw() == data.features.raw());
  const auto refusal = thrown<InvalidArgument>([] { ResidentTensor none{Tensor()}; });
  CHECK(refusal.starts_with("resident data: expected rows"));
}

TEST_CASE("batches requested by number equal those of next(), wherever next() is") {
  const Data data(11);
  for (const auto placement : {MemoryPlacement::Host, MemoryPlacement::Device}) {
    InMemoryDataSetIterator iterator(data.features, data.labels, 4, 7, placement), other = iterator;
    for (const std::int64_t epoch : {2, 0}) {
      iterator.reset(epoch);
      other.reset(epoch);
      Batch expected, batch;
      for (std::int64_t b = 0; other.next(expected); ++b) {
        iterator.numbered()->readBatch(b, batch);
        CHECK(bytesOf(batch) == bytesOf(expected));
        for (const auto list : {&Batch::features, &Batch::labels})
          CHECK((batch.*list).front().source == (expected.*list).front().source);
      }
      CHECK(textOf(iterator.numbered()->numberOfBatches(), iterator.numbered()->examplesEach()) == "3 4");
      REQUIRE(iterator.next(batch));  // still the first
      CHECK(batch.examples() == 4);
    }
  }
}

TEST_CASE("gatherRows accepts rows in any order, also twice") {
  const Tensor source = Tensor::of({1, 2, 3, 4, 5, 6}, {3, 2});
  Tensor target = Tensor::zeros({4, 2}), wrong = Tensor::zeros({3, 2});
  const std::vector<std::int64_t> rows{2, 0, 2, 1};
  gatherRows(source, rows, target);
  CHECK(std::ranges::equal(target.span<float>(), std::array{5, 6, 1, 2, 5, 6, 3, 4}));
  CHECK_THROWS_AS(gatherRows(source, rows, wrong), InvalidArgument);
}

}  // namespace
}  // namespace muster::test
