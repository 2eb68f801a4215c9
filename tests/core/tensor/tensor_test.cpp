#include "muster/core/tensor/tensor.h"
#include "muster/core/tensor/tensor_format.h"

#include "tests/support/arrays.h"
#include "tests/support/test.h"

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
  CHECK_REFUSED(copyTo(sources, Device::cpu()), "copyTo: tensor 1 is undefined");
  CHECK_REFUSED(copyTo(sources[1], Device::cpu()), "copyTo: the tensor is undefined");
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

TEST_CASE("at gives an element, and refuses a wrong type, number of indices or index") {
  const Tensor scores = Tensor::of({1, 2, 3, 4, 5, 6}, {2, 3});
  CHECK(scores.at(0, 2) == 3);
  CHECK(scores.at(1, 0) == 4);
  scores.at(1, 0) = 7;
  CHECK(scores.data<float>()[3] == 7);
  const Tensor labels = Tensor::zeros({4}, DType::Int64);
  labels.at<std::int64_t>(3) = 9;
  CHECK(labels.at<std::int64_t>(3) == 9);
  CHECK(Tensor::of({5}, Shape()).at() == 5);
  const auto problem = [](auto call) { return test::thrown<InvalidArgument>(call); };
  CHECK(problem([&] { scores.at(0, 3); }) ==
        "at(0, 3): float32 [2, 3] on cpu has no such element; indices count from 0");
  CHECK(problem([&] { scores.at(-1, 0); }) ==
        "at(-1, 0): float32 [2, 3] on cpu has no such element; indices count from 0");
  CHECK(problem([&] { scores.at(4); }) == "at(4): float32 [2, 3] on cpu has another number of dimensions");
  CHECK(problem([&] { labels.at(0); }) == "tensor: int64 [4] on cpu was read as float32");
  CHECK(problem([&] {
          Tensor::view(scores.raw(), {2, 3}, DType::Float32, Device::cuda(0)).at(0, 0);
        }) == "at(0, 0): float32 [2, 3] on cuda:0 is not on the CPU; copyTo copies it there");
  const Tensor blocks = Tensor::zeros({1, 5, 1, 2}, DType::Float32, Device::cpu(), Layout::ChannelBlocks);
  CHECK_CONTAINS(problem([&] { blocks.at(0, 0, 0, 0); }), "is not in row-major order");
}

TEST_CASE("argmax finds the first greatest element of each row, and NaN before numbers") {
  const Tensor x = Tensor::of({1, 3, 2, 5, 5, -1, -3, -2, -9, 4, test::kNan, 7}, {2, 2, 3});
  const Tensor best = argmax(x);
  CHECK(best.shape() == Shape{2, 2});
  CHECK((best.dtype() == DType::Int64));
  CHECK(best.at<std::int64_t>(0, 0) == 1);
  CHECK(best.at<std::int64_t>(0, 1) == 0);
  CHECK(best.at<std::int64_t>(1, 0) == 1);
  CHECK(best.at<std::int64_t>(1, 1) == 1);
  CHECK(argmax(Tensor::of({test::kNan, test::kNan, 1}, {3})).at<std::int64_t>() == 0);
  CHECK(argmax(Tensor::zeros({0, 3})).shape() == Shape{0});
  const Tensor bytes = Tensor::zeros({3}, DType::UInt8);
  bytes.at<std::uint8_t>(2) = 200;
  CHECK(argmax(bytes).at<std::int64_t>() == 2);
  CHECK_REFUSED(argmax(Tensor::zeros({3, 0})),
                "argmax: float32 [3, 0] on cpu has no rows of elements in its last dimension");
  CHECK_THROWS_AS(argmax(Tensor::of({1}, Shape())), InvalidArgument);
  CHECK_THROWS_AS(argmax(Tensor()), InvalidArgument);
}

TEST_CASE("a tensor is printed as nested lists, aligned, shortened and wrapped") {
  std::ostringstream text;
  text << Tensor::of({1, 2.5F, -3, 4, 5, 6}, {2, 3});
  CHECK(text.str() == "[[  1, 2.5,  -3],\n [  4,   5,   6]]\nfloat32 [2, 3] on cpu");
  CHECK(fmt::format("{}", Tensor::of({1, 2, 3, 4, 5, 6, 7, 8}, {2, 2, 2})) ==
        "[[[1, 2],\n  [3, 4]],\n\n [[5, 6],\n  [7, 8]]]\nfloat32 [2, 2, 2] on cpu");
  CHECK(valuesText(Tensor::of({1.0F / 3, 1e10F, -test::kInfinity}, {3})) ==
        "[0.333333,    1e+10,     -inf]\nfloat32 [3] on cpu");
  CHECK(valuesText(Tensor::of({5}, Shape())) == "5\nfloat32 [] on cpu");
  CHECK(valuesText(Tensor::zeros({0, 3})) == "[]\nfloat32 [0, 3] on cpu");
  CHECK(valuesText(Tensor()) == "an undefined tensor");
  const Tensor labels = Tensor::zeros({40}, DType::Int64);
  for (std::int64_t i = 0; i < 40; ++i) labels.at<std::int64_t>(i) = i + 10;
  const auto wrapped = valuesText(labels);  // 20 numbers of two digits fill a line of 80
  CHECK(wrapped.starts_with("[10, 11, "));
  CHECK_CONTAINS(wrapped, " 29,\n 30, 31, ");
  CHECK(wrapped.ends_with(" 49]\nint64 [40] on cpu"));
  const Tensor large = Tensor::zeros({8, 200}, DType::UInt8);
  large.at<std::uint8_t>(7, 199) = 255;
  const std::string row = "[  0,   0,   0, ...,   0,   0,   0]";
  CHECK(valuesText(large) == "[" + row + ",\n " + row + ",\n " + row + ",\n ...,\n " + row + ",\n " + row +
                                 ",\n [  0,   0,   0, ...,   0,   0, 255]]\nuint8 [8, 200] on cpu");
  CHECK(valuesText(Tensor::zeros({1, 5, 1, 2}, DType::Float32, Device::cpu(), Layout::ChannelBlocks)) ==
        "float32 [1, 5, 1, 2] on cpu in channel-blocks");
}
