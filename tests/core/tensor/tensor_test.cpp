#include "muster/core/tensor/tensor.h"

#include <doctest/doctest.h>

#include "muster/core/base/error.h"
#include "tests/support/arrays.h"

using namespace muster;
using test::sameBits;

TEST_CASE("copyTo gives each copy its own memory") {
  const Tensor sources[] = {Tensor::of({1, 2, 3, 4}, {2, 2}), Tensor::zeros({3}, DType::Int64),
                            Tensor::zeros({3, 5, 1, 2}, DType::Float32, Device::cpu(), Layout::SampleBlocks)};
  const auto copies = copyTo(sources, Device::cpu());
  REQUIRE(copies.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(copies[i].shape() == sources[i].shape());
    CHECK((copies[i].dtype() == sources[i].dtype()));
    CHECK((copies[i].layout() == sources[i].layout()));
    CHECK(sameBits(copies[i], sources[i]));
    CHECK(!shareMemory(copies[i], sources[i]));
  }
  copies[0].data<float>()[3] = 9;
  CHECK(sources[0].data<float>()[3] == 4);
  CHECK(sameBits(copyTo(sources[0].rows(1, 2), Device::cpu()), Tensor::of({3, 4}, {1, 2})));
}

TEST_CASE("copyTo refuses tensors that it cannot copy") {
  const Tensor sources[] = {Tensor::zeros({2}), Tensor()};
  CHECK_THROWS_WITH_AS(copyTo(sources, Device::cpu()), "copyTo: tensor 1 is undefined", InvalidArgument);
  CHECK_THROWS_WITH_AS(copyTo(sources[1], Device::cpu()), "copyTo: the tensor is undefined", InvalidArgument);
  CHECK_THROWS_AS(copyTo(sources[0], Device::cuda(99)), DeviceUnavailable);
}

TEST_CASE("shareMemory compares bytes of memory, whatever the views") {
  const Tensor all = Tensor::zeros({8}), other = Tensor::zeros({8});
  CHECK(shareMemory(all, all));
  CHECK(shareMemory(all, all.slice(7, {1})));
  CHECK(shareMemory(all.slice(2, {3}), all.slice(4, {3})));
  CHECK(!shareMemory(all.slice(2, {2}), all.slice(4, {2})));
  CHECK(!shareMemory(all, all.slice(4, {0})));
  CHECK(!shareMemory(all, other));
  CHECK(!shareMemory(all, Tensor()));
  CHECK(!shareMemory(all, Tensor::view(all.raw(), {8}, DType::Float32, Device::cuda(0))));
}
