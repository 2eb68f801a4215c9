#include "muster/core/data/batch.h"

#include <doctest/doctest.h>

#include <array>
#include <vector>

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

TEST_CASE("a smaller batch keeps a larger one's memory, and the larger gets it back") {
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

TEST_CASE("memory of somebody else is never resized into") {
  std::array<float, 8> foreign{};
  std::vector<NamedTensor> tensors{{"x", Tensor::view(foreign.data(), {8})}};
  CHECK(Batch::ensure(tensors, "x", {4}).raw() != foreign.data());

  const Tensor whole = Tensor::zeros({4, 2});
  std::vector<NamedTensor> part{{"x", whole.rows(1, 3)}};
  const Tensor& resized = Batch::ensure(part, "x", {3, 2});
  CHECK(resized.raw() != whole.rows(1, 3).raw());
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
