#include "muster/core/data/data_loader.h"

#include <latch>

#include "muster/core/data/input_description.h"
#include "muster/core/data/split.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using test::thrown;

/// A data set defined by a function.
class Made : public Dataset {
 public:
  Made(std::int64_t size, std::function<Example(std::int64_t)> make) : size_(size), make_(std::move(make)) {}
  std::int64_t size() const override { return size_; }
  Example get(std::int64_t index) const override { return make_(index); }

 private:
  std::int64_t size_;
  std::function<Example(std::int64_t)> make_;
};

Example squares(std::int64_t i) {
  const auto x = static_cast<float>(i);
  return {Tensor::of({x, x * x}, {2}), i};
}

std::vector<std::int64_t> classesOf(DataSetIterator& iterator, std::int64_t epoch) {
  std::vector<std::int64_t> classes;
  Batch batch;
  iterator.reset(epoch);
  while (iterator.next(batch))
    for (const auto label : batch.labels.front().value.span<std::int64_t>()) classes.push_back(label);
  return classes;
}

TEST_CASE("a data loader has its data set's description") {
  struct Described : Made {
    using Made::Made;
    InputDescription known{.classes = {"no", "yes"}};
    const InputDescription* description() const override { return &known; }
  };
  const Made plain(3, squares);
  const Described described(3, squares);
  CHECK(DataLoader(plain, 2).description() == nullptr);
  CHECK(DataLoader(described, 2).description() == &described.known);
  const DatasetSubset some(described, {2, 0});
  CHECK(DataLoader(some, 2).description() == &described.known);
}

TEST_CASE("a data loader joins examples into batches") {
  const Made data(3, squares);
  DataLoader loader(data, 2);
  Batch batch;
  REQUIRE(loader.next(batch));
  CHECK(batch.features.front().value.shape() == Shape{2, 2});
  CHECK(batch.features.front().value.data<float>()[3] == 1);
  REQUIRE(loader.next(batch));
  CHECK(batch.examples() == 1);
  CHECK(batch.features.front().value.data<float>()[1] == 4);
  CHECK(batch.labels.front().value.data<std::int64_t>()[0] == 2);
  CHECK_FALSE(loader.next(batch));
  CHECK(loader.examples() == 3);
}

TEST_CASE("dropLast leaves out a batch that is not full") {
  const Made data(7, squares);
  DataLoader loader(data, 3, {.dropLast = true});
  CHECK(classesOf(loader, 0) == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5});
  CHECK(loader.examples() == 6);
  const Made few(2, squares);
  DataLoader none(few, 3, {.dropLast = true});
  CHECK(classesOf(none, 0).empty());
}

TEST_CASE("a shuffle depends on the seed and the epoch alone") {
  const Made data(40, squares);
  DataLoader one(data, 8, {.shuffle = true, .seed = 3});
  DataLoader same(data, 5, {.shuffle = true, .seed = 3});
  DataLoader other(data, 8, {.shuffle = true, .seed = 4});
  const auto epoch1 = classesOf(one, 1);
  CHECK(classesOf(one, 0) != epoch1);
  CHECK(classesOf(same, 1) == epoch1);
  CHECK(classesOf(other, 1) != epoch1);
}

TEST_CASE("labels may be float targets, features may be bytes and views of the data set's memory") {
  std::array<std::uint8_t, 6> bytes{1, 2, 3, 4, 5, 6};
  const Made data(3, [&](std::int64_t i) {
    return Example{Tensor::view(&bytes[static_cast<std::size_t>(2 * i)], {1, 2}, DType::UInt8),
                   Tensor::of({static_cast<float>(i)}, {1})};
  });
  DataLoader loader(data, 3);
  Batch batch;
  REQUIRE(loader.next(batch));
  CHECK(batch.features.front().value.shape() == Shape{3, 1, 2});
  CHECK(batch.features.front().value.data<std::uint8_t>()[4] == 5);
  CHECK(batch.labels.front().value.shape() == Shape{3, 1});
  CHECK(batch.labels.front().value.data<float>()[2] == 2);
}

TEST_CASE("several readers make the same batches, and the error of the first example that fails") {
  const Made data(101, squares);
  DataLoader one(data, 8, {.shuffle = true, .seed = 3});
  for (const int readers : {0, 2, 5, 50}) {
    DataLoader several(data, 8, {.shuffle = true, .seed = 3, .readers = readers});
    Batch expected, batch;
    one.reset(1);
    several.reset(1);
    while (one.next(expected)) {
      REQUIRE(several.next(batch));
      for (const auto list : {&Batch::features, &Batch::labels}) {
        const Tensor &a = (batch.*list).front().value, &e = (expected.*list).front().value;
        REQUIRE(a.shape() == e.shape());
        CHECK(std::memcmp(a.raw(), e.raw(), e.bytes()) == 0);
      }
    }
    CHECK_FALSE(several.next(batch));
  }
  const Made failing(64, [](std::int64_t i) {
    if (i % 10 == 3) throw std::runtime_error(fmt::format("example {}", i));
    return squares(i);
  });
  DataLoader broken(failing, 64, {.readers = 4});
  Batch batch;
  for (int i = 0; i < 20; ++i) {
    broken.reset(0);
    CHECK(thrown<std::runtime_error>([&] { broken.next(batch); }) == "example 3");
  }
  CHECK_THROWS_AS(DataLoader(data, 8, {.readers = -1}), InvalidArgument);
}

TEST_CASE("readers call get at the same time") {
  std::latch together(3);  // each waits for the others
  const Made data(4, [&](std::int64_t i) {
    if (i > 0) together.arrive_and_wait();
    return squares(i);
  });
  DataLoader loader(data, 4, {.readers = 3});
  CHECK(classesOf(loader, 0) == std::vector<std::int64_t>{0, 1, 2, 3});
}

TEST_CASE("an example whose shape or type differs from those before it is refused by its index") {
  const auto refusal = [](std::function<Example(std::int64_t)> odd) {
    const Made data(4, [&](std::int64_t i) { return i == 2 ? odd(i) : squares(i); });
    DataLoader loader(data, 4);
    Batch batch;
    return thrown<InvalidArgument>([&] { loader.next(batch); });
  };
  const auto shape = refusal([](std::int64_t i) { return Example{Tensor::zeros({3}), i}; });
  CHECK_CONTAINS(shape, "example 2");
  CHECK_CONTAINS(shape, "[3]");
  CHECK_CONTAINS(refusal([](std::int64_t i) {
                   return Example{Tensor::zeros({2}, DType::UInt8), i};
                 }),
                 "example 2");
  CHECK_CONTAINS(refusal([](std::int64_t i) { return Example{Tensor(), i}; }), "example 2");
  CHECK_CONTAINS(refusal([](std::int64_t) {
                   return Example{Tensor::zeros({2}), Tensor::zeros({1})};
                 }),
                 "example 2");
  CHECK_CONTAINS(refusal([](std::int64_t) {
                   return Example{Tensor::zeros({2}), Tensor::zeros({1}, DType::UInt8)};
                 }),
                 "example 2");
}

TEST_CASE("a class index among float targets is refused") {
  const Made data(2, [](std::int64_t i) {
    return i == 0 ? Example{Tensor::zeros({2}), Tensor::zeros({1})} : squares(i);
  });
  DataLoader loader(data, 2);
  Batch batch;
  CHECK_CONTAINS(thrown<InvalidArgument>([&] { loader.next(batch); }), "example 1");
}

TEST_CASE("an exception of the data set passes through, and the next epoch works") {
  bool broken = true;
  const Made data(3, [&](std::int64_t i) {
    if (broken && i == 1) throw std::runtime_error("cannot decode 1");
    return squares(i);
  });
  DataLoader loader(data, 2);
  Batch batch;
  CHECK_THROWS_WITH(loader.next(batch), "cannot decode 1");
  broken = false;
  CHECK(classesOf(loader, 1) == std::vector<std::int64_t>{0, 1, 2});
}

TEST_CASE("invalid sizes are refused") {
  const Made data(3, squares), negative(-1, squares);
  CHECK_THROWS_AS(DataLoader(data, 0), InvalidArgument);
  CHECK_THROWS_AS(DataLoader(negative, 1), InvalidArgument);
}

}  // namespace
}  // namespace muster
