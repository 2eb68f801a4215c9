#include "muster/core/data/in_memory.h"

#include <numeric>

#include "tests/support/test.h"

namespace muster {
namespace {

using test::thrown;

/// Example i has the features (i, i + 0.5) and the class i.
struct Data {
  explicit Data(std::int64_t n) : features(Tensor::empty({n, 2})), labels(Tensor::empty({n}, DType::Int64)) {
    for (std::int64_t i = 0; i < n; ++i) {
      features.data<float>()[2 * i] = static_cast<float>(i);
      features.data<float>()[2 * i + 1] = static_cast<float>(i) + 0.5f;
      labels.data<std::int64_t>()[i] = i;
    }
  }
  Tensor features, labels;
};

/// The classes of an epoch by batch; checks that features and labels match.
std::vector<std::vector<std::int64_t>> epochOf(DataSetIterator& iterator, std::int64_t epoch) {
  std::vector<std::vector<std::int64_t>> batches;
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

TEST_CASE("rows come in order, and the last batch holds the remaining ones") {
  const Data data(5);
  InMemoryDataSetIterator iterator(data.features, data.labels, 2);
  const std::vector<std::vector<std::int64_t>> expected{{0, 1}, {2, 3}, {4}};
  CHECK(epochOf(iterator, 0) == expected);
  CHECK(epochOf(iterator, 1) == expected);
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
  CHECK_FALSE(iterator.next(batch));
  CHECK_FALSE(iterator.next(batch));
  CHECK(batch.examples() == 2);
}

TEST_CASE("a shuffled epoch has every example once, in an order that depends on seed and epoch") {
  const Data data(100);
  InMemoryDataSetIterator one(data.features, data.labels, 32, 5);
  InMemoryDataSetIterator other(data.features, data.labels, 32, 5);
  const auto epoch2 = epochOf(one, 2);
  CHECK(epochOf(one, 3) != epoch2);
  CHECK(epochOf(other, 2) == epoch2);
  std::vector<std::int64_t> all;
  for (const auto& batch : epoch2) all.insert(all.end(), batch.begin(), batch.end());
  CHECK(all.size() == 100);
  std::ranges::sort(all);
  CHECK(std::ranges::adjacent_find(all) == all.end());
}

TEST_CASE("uint8 features and float targets are not converted") {
  const Tensor features = Tensor::zeros({3, 1, 2, 2}, DType::UInt8);
  std::iota(features.data<std::uint8_t>(), features.data<std::uint8_t>() + 12, std::uint8_t{0});
  InMemoryDataSetIterator iterator(features, Tensor::of({1, 2, 3, 4, 5, 6}, {3, 2}), 2);
  Batch batch;
  REQUIRE(iterator.next(batch));
  REQUIRE(iterator.next(batch));
  CHECK(batch.features.front().value.shape() == Shape{1, 1, 2, 2});
  CHECK(batch.features.front().value.data<std::uint8_t>()[0] == 8);
  CHECK(batch.labels.front().value.shape() == Shape{1, 2});
  CHECK(batch.labels.front().value.data<float>()[1] == 6);
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
    for (const auto& [expected, both] :
         {std::pair(&numbers.features[0], std::pair(&rows.features[0], &gathered.features[0])),
          {&numbers.labels[0], {&rows.labels[0], &gathered.labels[0]}}}) {
      const Tensor one = both.first->gathered();
      CHECK(one.shape() == expected->value.shape());
      CHECK(std::memcmp(one.raw(), expected->value.raw(), one.bytes()) == 0);
      CHECK(both.second->value.shape() == expected->value.shape());
      CHECK(std::memcmp(both.second->value.raw(), expected->value.raw(), one.bytes()) == 0);
    }
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
  const ResidentTensor tensor(data.features);
  CHECK(tensor.on(Device::cpu()).raw() == data.features.raw());
  CHECK(thrown<InvalidArgument>([] {
          ResidentTensor none{Tensor()};
        }).starts_with("resident data: expected rows"));
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
        for (const auto list : {&Batch::features, &Batch::labels}) {
          const Tensor &a = (batch.*list).front().value, &e = (expected.*list).front().value;
          REQUIRE(a.shape() == e.shape());
          CHECK(std::memcmp(a.raw(), e.raw(), e.bytes()) == 0);
          CHECK((batch.*list).front().source == (expected.*list).front().source);
        }
      }
      CHECK(iterator.numbered()->numberOfBatches() == 3);
      CHECK(iterator.numbered()->examplesEach() == 4);
      REQUIRE(iterator.next(batch));  // still the first
      CHECK(batch.examples() == 4);
    }
  }
}

TEST_CASE("gatherRows accepts rows in any order, also twice") {
  const Tensor source = Tensor::of({1, 2, 3, 4, 5, 6}, {3, 2});
  Tensor target = Tensor::zeros({4, 2});
  const std::vector<std::int64_t> rows{2, 0, 2, 1};
  gatherRows(source, rows, target);
  const std::vector<float> expected{5, 6, 1, 2, 5, 6, 3, 4};
  CHECK(std::ranges::equal(target.span<float>(), expected));
  Tensor wrong = Tensor::zeros({3, 2});
  CHECK_THROWS_AS(gatherRows(source, rows, wrong), InvalidArgument);
}

}  // namespace
}  // namespace muster
