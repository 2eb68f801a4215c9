#include "muster/core/data/batch.h"

#include "tests/support/test.h"

namespace muster {
namespace {

TEST_CASE("a batch has as many examples as its first feature has rows") {
  Batch batch;
  CHECK(batch.examples() == 0);
  Batch::ensure(batch.features, "x", {5, 2});
  CHECK(batch.examples() == 5);
}

TEST_CASE("ensure makes a tensor once and finds it again by its name") {
  std::vector<NamedTensor> tensors;
  void* first = Batch::ensure(tensors, "a", {4, 3}).raw();
  Batch::ensure(tensors, "b", {2}, DType::Int64);
  CHECK(Batch::ensure(tensors, "a", {4, 3}).raw() == first);
  REQUIRE(tensors.size() == 2);
  CHECK(tensors[0].name == "a");
  CHECK((tensors[1].value.dtype() == DType::Int64));
}

TEST_CASE("a smaller batch keeps a larger one's memory, and the larger one reuses it") {
  std::vector<NamedTensor> tensors;
  void* memory = Batch::ensure(tensors, "x", {8, 10}).raw();
  const Tensor& smaller = Batch::ensure(tensors, "x", {3, 10});
  CHECK(smaller.raw() == memory);
  CHECK(smaller.shape() == Shape{3, 10});
  CHECK(Batch::ensure(tensors, "x", {10, 4}, DType::Int64).raw() == memory);  // 320 bytes, as at first
  const Tensor& again = Batch::ensure(tensors, "x", {8, 10});
  CHECK(again.raw() == memory);
  CHECK((again.dtype() == DType::Float32));
}

TEST_CASE("a larger batch gets memory of its size") {
  std::vector<NamedTensor> tensors;
  Batch::ensure(tensors, "x", {2});
  const Tensor& larger = Batch::ensure(tensors, "x", {100000});
  CHECK(larger.shape() == Shape{100000});
  larger.data<float>()[99999] = 1;  // AddressSanitizer would object
}

TEST_CASE("resizing never writes into memory of another owner") {
  std::array<float, 8> foreign{};
  std::vector<NamedTensor> tensors{{"x", Tensor::view(foreign.data(), {8})}};
  CHECK(Batch::ensure(tensors, "x", {4}).raw() != foreign.data());

  const Tensor whole = Tensor::zeros({4, 2});
  std::vector<NamedTensor> part{{"x", whole.rows(1, 3)}};
  const Tensor& resized = Batch::ensure(part, "x", {3, 2});
  CHECK(resized.raw() != whole.rows(1, 3).raw());
}

TEST_CASE("resizing the first rows of a tensor never writes into the other rows") {
  const Tensor whole = Tensor::zeros({4, 2});
  std::vector<NamedTensor> part{{"x", whole.rows(0, 2)}};
  CHECK(Batch::ensure(part, "x", {1, 2}).raw() == whole.raw());
  CHECK(Batch::ensure(part, "x", {3, 2}).raw() != whole.raw());
}

TEST_CASE("a tensor kept by value stays valid when others are added") {
  std::vector<NamedTensor> tensors;
  const Tensor first = Batch::ensure(tensors, "0", {4});
  for (int i = 1; i < 20; ++i) Batch::ensure(tensors, std::to_string(i), {4});
  first.data<float>()[3] = 7;
  CHECK(Batch::ensure(tensors, "0", {4}).data<float>()[3] == 7);
}

TEST_CASE("masks hold weights for examples, and 0 or 1 for time steps") {
  const auto problem = [](const std::string& name, const Tensor& mask) {
    Batch batch;
    batch.masks = {{"features", Tensor::of({0, 1}, {1, 2})}, {name, mask}};
    if (name == "features") batch.masks.erase(batch.masks.begin());
    return test::thrown<InvalidArgument>([&] { batch.requireMaskValues(); });
  };
  CHECK(problem("labels", Tensor::of({0, 0.5f, 7}, {3})) == "");
  CHECK(problem("labels", Tensor::of({1, -test::kNan}, {2})) ==
        "batch: the mask labels of example 1 is nan; it must be finite and at least 0");
  CHECK(problem("w", Tensor::of({1, 1, 1, 1, 1, -1}, {2, 3})) ==
        "batch: the mask w of example 1, step 2 is -1; it must be finite and at least 0");
  CHECK_FALSE(problem("w", Tensor::of({test::kInfinity}, {1})).empty());
  CHECK(problem("features", Tensor::of({1, 0, 0, 1}, {2, 2})) == "");
  CHECK(
      problem("features", Tensor::of({1, 0, 1, 0.5f}, {2, 2})) ==
      "batch: the mask features of example 1, step 1 is 0.5; it must be 1 for a real step or 0 for padding");
  CHECK_FALSE(problem("features", Tensor::of({test::kNan, 1}, {1, 2})).empty());
  CHECK_FALSE(problem("features", Tensor::of({-1, 1}, {1, 2})).empty());
  CHECK(problem("w", Tensor()) == "");
  CHECK(problem("w", Tensor::zeros({0, 2})) == "");
}

TEST_CASE("ensureOnly drops what another iterator left") {
  std::vector<NamedTensor> tensors;
  Batch::ensure(tensors, "other", {2});
  Batch::ensure(tensors, "x", {2});
  Batch::ensureOnly(tensors, "x", {3});
  REQUIRE(tensors.size() == 1);
  CHECK(tensors[0].name == "x");
  CHECK(tensors[0].value.shape() == Shape{3});
}

}  // namespace
}  // namespace muster
