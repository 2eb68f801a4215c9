#include "muster/parallel/exchange/all_reduce.h"

#include "muster/core/base/error.h"
#include "muster/core/base/random.h"
#include "tests/support/allocations.h"
#include "tests/support/arrays.h"
#include "tests/support/devices.h"

using namespace muster;
using muster::test::sameBits;

namespace {

std::vector<Tensor> gradients(int devices, std::int64_t n) {
  std::vector<Tensor> all;
  for (int d = 0; d < devices; ++d) {
    const RandomStream random(5, "gradient", d);
    all.push_back(Tensor::empty({n}));
    for (std::int64_t i = 0; i < n; ++i)
      all.back().data<float>()[i] = static_cast<float>(random.normal(static_cast<std::uint64_t>(i)));
  }
  return all;
}

}  // namespace

TEST_CASE("allReduce gives the sum known in closed form, over devices and sizes") {
  Context context;
  for (const int devices : {1, 2, 3, 4, 8})
    for (const std::int64_t n : {0, 1, 7, 1009, 40009}) {
      INFO("devices ", devices, ", n ", n);
      std::vector<Tensor> tensors;
      for (int d = 0; d < devices; ++d) {
        tensors.push_back(Tensor::empty({n}));
        for (std::int64_t i = 0; i < n; ++i)
          tensors[static_cast<std::size_t>(d)].data<float>()[i] = static_cast<float>(i % 89 + d);
      }
      allReduce(tensors, context);
      Tensor expected = Tensor::empty({n});
      for (std::int64_t i = 0; i < n; ++i)
        expected.data<float>()[i] = static_cast<float>(devices * (i % 89) + devices * (devices - 1) / 2);
      for (const auto& tensor : tensors) CHECK(sameBits(tensor, expected));
    }
}

TEST_CASE("allReduce writes into the tensors' memory, not into other handles") {
  Context context;
  const Tensor blocks[] = {Tensor::of({1, 2, 3, 4}, {4}), Tensor::of({10, 20, 30, 40}, {4})};
  // Only temporary handles are passed; views held elsewhere see the sum.
  allReduce(std::vector{blocks[0].slice(1, {2}), blocks[1].slice(1, {2})}, context);
  CHECK(sameBits(blocks[0], Tensor::of({1, 22, 33, 4}, {4})));
  CHECK(sameBits(blocks[1], Tensor::of({10, 22, 33, 40}, {4})));
}

TEST_CASE("allReduce has the same bits for any number of threads, run after run") {
  std::vector<Tensor> expected;
  for (const int threads : {1, 1, 2, 3}) {
    Context context(Device::cpu(), {.threads = threads});
    const auto tensors = gradients(3, 100003);
    allReduce(tensors, context);
    if (expected.empty()) expected = tensors;
    for (const auto& tensor : tensors) CHECK(sameBits(tensor, expected[0]));
  }
}

TEST_CASE("allReduce adds float64 tensors") {
  Context context;
  std::vector<Tensor> tensors;
  for (const double value : {0.1, 0.2, 0.3}) {
    tensors.push_back(Tensor::empty({2}, DType::Float64));
    for (double& x : tensors.back().span<double>()) x = value;
  }
  allReduce(tensors, context);
  for (const auto& tensor : tensors)
    for (const double x : tensor.span<double>()) CHECK(x == 0.1 + 0.2 + 0.3);
}

TEST_CASE("allReduce allocates nothing") {
  Context context;
  const auto tensors = gradients(4, 1009);
  const long before = test::allocations();
  allReduce(tensors, context);
  CHECK(test::allocations() == before);
}

TEST_CASE("allReduce refuses tensors that share memory or cannot be added") {
  Context context;
  auto tensors = gradients(3, 6);
  const Tensor before = cloneTensor(tensors[0]);
  tensors[2] = tensors[0];  // a handle instead of a copy
  CHECK_THROWS_WITH_AS(
      allReduce(tensors, context),
      "allReduce: tensors 0 and 2 share memory; each device needs memory of its own, as copyTo gives it",
      InvalidArgument);
  CHECK(sameBits(tensors[0], before));
  const Tensor block = Tensor::zeros({9});
  CHECK_THROWS_AS(allReduce(std::vector{block.slice(0, {5}), block.slice(4, {5})}, context), InvalidArgument);
  CHECK_NOTHROW(allReduce(std::vector{block.slice(0, {4}), block.slice(4, {4})}, context));
  CHECK_THROWS_WITH_AS(allReduce({}, context), "allReduce: there are no tensors", InvalidArgument);
  CHECK_THROWS_WITH_AS(allReduce(std::vector{Tensor::zeros({4}), Tensor::zeros({2, 2})}, context),
                       "allReduce: tensor 1 is float32 [2, 2] on cpu, tensor 0 is float32 [4] on cpu",
                       InvalidArgument);
}

TEST_CASE_ON("allReduce over the CPU and a GPU, and of several tensors on one GPU, has the CPU's bits", Where,
             test::OnGpu) {
  Context cpu, gpu(Device::cuda(0));
  const auto expected = gradients(3, 1009);
  allReduce(expected, cpu);
  for (const auto& where : {std::vector{Device::cpu(), Device::cuda(0), Device::cpu()},
                            std::vector{Device::cuda(0), Device::cuda(0), Device::cuda(0)}})
    for (Context* context : {&cpu, &gpu}) {
      const auto on = gradients(3, 1009);
      std::vector<Tensor> tensors;
      for (std::size_t d = 0; d < 3; ++d) tensors.push_back(copyTo(on[d], where[d]));
      allReduce(tensors, *context);
      context->synchronize();
      for (const auto& tensor : tensors) CHECK(sameBits(tensor, expected[0]));
    }
}
