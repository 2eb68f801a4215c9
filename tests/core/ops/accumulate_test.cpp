#include "muster/core/ops/accumulate.h"

#include "tests/core/ops/test.h"

using namespace muster;
using test::sameBits;

namespace {

std::vector<Tensor> randomTensors(int count, std::int64_t n, DType type = DType::Float32) {
  std::vector<Tensor> tensors;
  for (int t = 0; t < count; ++t) tensors.push_back(test::randomTensor(n, fmt::format("input {}", t), type));
  return tensors;
}

/// The rule as the header states it: float64, in the order of the inputs, rounded once.
Tensor expectedSum(const std::vector<Tensor>& inputs) {
  Tensor out = Tensor::empty(inputs[0].shape(), inputs[0].dtype());
  for (std::int64_t i = 0; i < out.elements(); ++i) {
    double sum = test::valueAt(inputs[0], i);
    for (std::size_t t = 1; t < inputs.size(); ++t) sum += test::valueAt(inputs[t], i);
    test::setValue(out, i, sum);
  }
  return out;
}

}  // namespace

TEST_ON_DEVICES(
    "sum has the same bits on each device and for any number of threads, over types, inputs and sizes") {
  for (const DType type : {DType::Float32, DType::Float64})
    for (const int threads : test::threadCounts<Where>({1, 2, 3}))
      for (const int count : {1, 2, 3, 5, 8})
        for (const std::int64_t n : {0, 1, 7, 256, 1009, 100003}) {
          if (!Where::device().isCpu() && (type == DType::Float64 || n == 0)) continue;
          INFO(toString(type), ", threads ", threads, ", count ", count, ", n ", n);
          test::Place<Where> on(threads);
          const auto inputs = randomTensors(count, n, type);
          Tensor out = Tensor::empty({n}, type);
          for (std::int64_t i = 0; i < n; ++i) test::setValue(out, i, test::kNan);
          out = on(out);
          sum(copyTo(inputs, Where::device()), out, on.context);
          CHECK(sameBits(on.get(out), expectedSum(inputs)));
        }
}

TEST_CASE("sum may write to any of its inputs") {
  Context context;
  const std::int64_t n = 1009;
  const auto before = randomTensors(3, n);
  const Tensor expected = expectedSum(before);
  for (std::size_t target = 0; target < 3; ++target) {
    const auto inputs = randomTensors(3, n);
    Tensor out = inputs[target];
    sum(inputs, out, context);
    for (std::size_t t = 0; t < 3; ++t) CHECK(sameBits(inputs[t], t == target ? expected : before[t]));
  }
}

TEST_CASE("sum of float32 is rounded only once") {
  Context context;
  const Tensor inputs[] = {Tensor::of({16777216, -0.0f}, {2}), Tensor::of({1, -0.0f}, {2}),
                           Tensor::of({-16777216, -0.0f}, {2})};
  Tensor out = Tensor::zeros({2});
  sum(inputs, out, context);
  CHECK(sameBits(out, Tensor::of({1, -0.0f}, {2})));
}

TEST_CASE("sum leaves the padding of a layout at zero") {
  Context context;
  Tensor a = Tensor::zeros({3, 5, 2, 2}, DType::Float32, Device::cpu(), Layout::SampleBlocks);
  a.data<float>()[0] = 2;
  const Tensor inputs[] = {a, cloneTensor(a)};
  Tensor out = test::nanTensor(a.shape(), Layout::SampleBlocks);
  sum(inputs, out, context);
  CHECK(out.data<float>()[0] == 4);
  CHECK(test::paddingIsZero(out));
}

TEST_CASE("sum refuses tensors that cannot be added, and names them") {
  Context context;
  const Tensor memory = Tensor::zeros({12}), good = Tensor::zeros({4});
  Tensor out = memory.slice(4, {4}), small = Tensor::zeros({3});
  const std::string first = ", inputs[0] is float32 [4] on cpu";
  const auto refusal = [&](const std::vector<Tensor>& inputs, Tensor& to) {
    return test::thrown<InvalidArgument>([&] { sum(inputs, to, context); });
  };
  CHECK(refusal({}, out) == "sum: there are no inputs");
  CHECK(refusal({good, good, Tensor::zeros({2, 2})}, out) ==
        "sum: inputs[2] is float32 [2, 2] on cpu" + first);
  CHECK(refusal({good, Tensor::zeros({4}, DType::Float64)}, out) ==
        "sum: inputs[1] is float64 [4] on cpu" + first);
  CHECK(refusal({good, Tensor()}, out) == "sum: inputs[1] is an undefined tensor" + first);
  CHECK(refusal({Tensor::zeros({4}, DType::Int64)}, out) ==
        "sum: inputs must be float32 or float64, got int64 [4] on cpu");
  CHECK(refusal({good, memory.slice(2, {4})}, out) == "sum: out overlaps inputs[1] in part");
  CHECK(refusal({good, good}, small) == "sum: out is float32 [3] on cpu" + first);
  CHECK(refusal({good, good}, out) == "");
}
