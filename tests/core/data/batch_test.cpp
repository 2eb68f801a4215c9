#include "muster/core/data/batch.h"

#include "tests/support/test.h"

namespace muster::test {
namespace {

TEST_CASE("a batch has as many examples as its first feature has rows") {
  Batch batch;
  CHECK(batch.examples() == 0);
  Batch::ensure(batch.features, "x", {5, 2});
  CHECK(batch.examples() == 5);
}

TEST_CASE("ensure makes a tensor once and finds it again by its name; ensureOnly drops others") {
  std::vector<NamedTensor> tensors;
  void* first = Batch::ensure(tensors, "a", {4, 3}).raw();
  Batch::ensure(tensors, "b", {2}, DType::Int64);
  CHECK(Batch::ensure(tensors, "a", {4, 3}).raw() == first);
  REQUIRE(tensors.size() == 2);
  CHECK(tensors[1].value.toString() == "int64 [2] on cpu");
  Batch::ensureOnly(tensors, "b", {3});
  REQUIRE(tensors.size() == 1);
  CHECK(tensors[0].name + " " + tensors[0].value.toString() == "b float32 [3] on cpu");
}

TEST_CASE("a smaller batch keeps a larger one's memory, which that one reuses; one beyond it gets its own") {
  std::vector<NamedTensor> tensors;
  const void* memory = Batch::ensure(tensors, "x", {8, 10}).raw();
  const auto kept = [&](const Shape& shape, DType dtype = DType::Float32) {
    const Tensor& tensor = Batch::ensure(tensors, "x", shape, dtype);
    CHECK(tensor.shape() == shape);
    CHECK((tensor.dtype() == dtype));
    return tensor.raw() == memory;
  };
  CHECK(kept({3, 10}));
  CHECK(kept({10, 4}, DType::Int64));  // 320 bytes, as at first
  CHECK(kept({8, 10}));
  CHECK_FALSE(kept({100000}));
  tensors[0].value.data<float>()[99999] = 1;  // AddressSanitizer would object
}

TEST_CASE("resizing never writes into memory of another owner, nor into other rows of a tensor") {
  std::array<float, 8> foreign{};
  const Tensor whole = Tensor::zeros({4, 2});
  const auto kept = [](const Tensor& tensor, const Shape& shape) {
    std::vector<NamedTensor> tensors{{"x", tensor}};
    return Batch::ensure(tensors, "x", shape).raw() == tensor.raw();
  };
  CHECK_FALSE(kept(Tensor::view(foreign.data(), {8}), {4}));
  CHECK_FALSE(kept(whole.rows(1, 3), {3, 2}));
  CHECK(kept(whole.rows(0, 2), {1, 2}));
  CHECK_FALSE(kept(whole.rows(0, 2), {3, 2}));
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
    return thrown<InvalidArgument>([&] { batch.requireMaskValues(); });
  };
  const std::string atLeast0 = "; it must be finite and at least 0";
  const std::string either = "; it must be 1 for a real step or 0 for padding", at = "batch: the mask ";
  CHECK(problem("labels", Tensor::of({0, 0.5f, 7}, {3})) == "");
  CHECK(problem("labels", Tensor::of({1, -kNan}, {2})) == at + "labels of example 1 is nan" + atLeast0);
  CHECK(problem("w", Tensor::of({1, 1, 1, 1, 1, -1}, {2, 3})) ==
        at + "w of example 1, step 2 is -1" + atLeast0);
  CHECK(problem("w", Tensor::of({kInfinity}, {1})) == at + "w of example 0 is inf" + atLeast0);
  CHECK(problem("features", Tensor::of({1, 0, 0, 1}, {2, 2})) == "");
  for (const float wrong : {0.5f, kNan, -1.0f})
    CHECK(problem("features", Tensor::of({1, 0, 1, wrong}, {2, 2})) ==
          fmt::format("{}features of example 1, step 1 is {}{}", at, wrong, either));
  CHECK(problem("w", Tensor()) == "");
  CHECK(problem("w", Tensor::zeros({0, 2})) == "");
}

}  // namespace
}  // namespace muster::test
