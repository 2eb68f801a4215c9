#include "muster/core/data/data_loader.h"

#include <latch>

#include "muster/core/data/input_description.h"
#include "muster/core/data/split.h"
#include "tests/core/data/batch_bytes.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

using Classes = std::vector<std::int64_t>;

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

Classes classesOf(DataSetIterator& iterator, std::int64_t epoch) {
  Classes classes;
  Batch batch;
  iterator.reset(epoch);
  while (iterator.next(batch))
    for (const auto label : batch.labels.front().value.span<std::int64_t>()) classes.push_back(label);
  return classes;
}

/// The first batch.
Batch firstOf(DataLoader&& loader) {
  Batch batch;
  REQUIRE(loader.next(batch));
  return batch;
}

TEST_CASE("a data loader has its data set's description") {
  struct Described : Made {
    using Made::Made;
    InputDescription known{.classes = {"no", "yes"}};
    const InputDescription* description() const override { return &known; }
  };
  const Made plain(3, squares);
  const Described described(3, squares);
  const DatasetSubset some(described, {2, 0});
  CHECK(DataLoader(plain, 2).description() == nullptr);
  CHECK(DataLoader(described, 2).description() == &described.known);
  CHECK(DataLoader(some, 2).description() == &described.known);
}

TEST_CASE("a data loader joins examples into batches, of which dropLast leaves out one that is not full") {
  const Made data(7, squares), few(2, squares);
  DataLoader all(data, 3), full(data, 3, {.dropLast = true}), none(few, 3, {.dropLast = true});
  CHECK(classesOf(all, 0) == Classes{0, 1, 2, 3, 4, 5, 6});
  CHECK(classesOf(full, 0) == Classes{0, 1, 2, 3, 4, 5});
  CHECK(classesOf(none, 0).empty());
  CHECK(textOf(all.examples().value(), full.examples().value()) == "7 6");
  const Batch batch = firstOf(DataLoader(data, 3));
  CHECK(batch.features.front().value.shape() == Shape{3, 2});
  CHECK(std::ranges::equal(batch.features.front().value.span<float>(), std::array{0, 0, 1, 1, 2, 4}));
}

TEST_CASE("a shuffle depends on the seed and the epoch alone") {
  const Made data(40, squares);
  DataLoader one(data, 8, {.shuffle = true, .seed = 3}), same(data, 5, {.shuffle = true, .seed = 3}),
      other(data, 8, {.shuffle = true, .seed = 4});
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
  const Batch batch = firstOf(DataLoader(data, 3));
  const Tensor &features = batch.features.front().value, &labels = batch.labels.front().value;
  CHECK(textOf(features.toString(), labels.toString()) == "uint8 [3, 1, 2] on cpu float32 [3, 1] on cpu");
  CHECK(std::ranges::equal(features.span<std::uint8_t>(), bytes));
  CHECK(labels.data<float>()[2] == 2);
}

TEST_CASE("several readers make the same batches, and the error of the first example that fails") {
  const Made data(101, squares);
  DataLoader one(data, 8, {.shuffle = true, .seed = 3});
  one.reset(1);
  const auto expected = bytesOfRest(one);
  for (const int readers : {0, 2, 5, 50}) {
    DataLoader several(data, 8, {.shuffle = true, .seed = 3, .readers = readers});
    several.reset(1);
    CHECK(bytesOfRest(several) == expected);
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
  CHECK(classesOf(loader, 0) == Classes{0, 1, 2, 3});
}

TEST_CASE("an example whose shape or type differs from those before it is refused by its index") {
  const auto refusal = [](const Example& odd, const Example& others = squares(1)) {
    const Made data(4, [&](std::int64_t i) { return i == 2 ? odd : others; });
    DataLoader loader(data, 4);
    Batch batch;
    return thrown<InvalidArgument>([&] { loader.next(batch); });
  };
  const Tensor two = Tensor::zeros({2});
  for (const Example& odd :
       {Example{Tensor::zeros({2}, DType::UInt8), 2}, Example{Tensor(), 2}, Example{two, Tensor::zeros({1})},
        Example{two, Tensor::zeros({1}, DType::UInt8)}})
    CHECK_CONTAINS(refusal(odd), "example 2");
  const auto shape = refusal({Tensor::zeros({3}), 2});
  CHECK_CONTAINS(shape, "example 2");
  CHECK_CONTAINS(shape, "[3]");
  CHECK_CONTAINS(refusal(squares(2), {two, Tensor::zeros({1})}), "example 2");  // a class among targets
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
  CHECK(classesOf(loader, 1) == Classes{0, 1, 2});
}

TEST_CASE("invalid sizes are refused") {
  const Made data(3, squares), negative(-1, squares);
  CHECK_THROWS_AS(DataLoader(data, 0), InvalidArgument);
  CHECK_THROWS_AS(DataLoader(negative, 1), InvalidArgument);
}

}  // namespace
}  // namespace muster::test
