#include "muster/parallel/exchange/tensor_parts.h"

#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

TEST_CASE("a part, a view into bytes and a copy are of the same memory as the block") {
  const Tensor block = Tensor::zeros({6});
  for (int i = 0; i < 6; ++i) block.data<float>()[i] = static_cast<float>(i);
  const Tensor middle = part(block, {2, 5});
  CHECK(middle.elements() == 3);
  CHECK(middle.data<float>() == block.data<float>() + 2);

  const Tensor bytes = Tensor::zeros({48}, DType::UInt8);
  const Tensor doubles = viewAt(bytes, 2, 3, DType::Float64);
  CHECK(doubles.raw() == static_cast<std::byte*>(bytes.raw()) + 16);
  CHECK(doubles.bytes() == 24);
  CHECK(bytesOf(doubles).data() == doubles.raw());
  CHECK(bytesOf(doubles).size() == 24);

  const Tensor other = Tensor::zeros({3});
  copyOnHost(other, middle);
  CHECK(other.data<float>()[2] == 4);
  copyOnHost(other, viewOf(other));  // the same memory
  CHECK(other.data<float>()[2] == 4);
}

TEST_CASE("variances come after as many means") {
  CHECK(inPart({3, 7}, 0, 10).begin == 3);
  CHECK(inPart({3, 7}, 1, 10).begin == 13);
  CHECK(inPart({3, 7}, 1, 10).end == 17);
}

TEST_CASE("an element that is not finite is counted from the block's beginning") {
  CHECK(thrown<NonFiniteResult>([] {
          atElement(1000, "mean", [] { throw NonFiniteResult("linearCombination", 24); });
        }) == "mean: the result is not finite, at element 1024");
  CHECK(thrown<InvalidArgument>([] {
          atElement(1000, "mean", [] { throw InvalidArgument("of another kind"); });
        }) == "of another kind");
}
