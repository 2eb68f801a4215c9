#include "muster/core/ops/gather.h"

#include "muster/core/base/random.h"
#include "tests/support/batch_of.h"
#include "tests/support/devices.h"
#include "tests/support/test.h"

using namespace muster;

namespace {

/// A tensor with different bytes at every position.
Tensor numbered(const Shape& shape, DType dtype) {
  Tensor tensor = Tensor::empty(shape, dtype);
  const RandomStream random(7, "gather");
  auto* const bytes = static_cast<std::uint8_t*>(tensor.raw());
  for (std::size_t i = 0; i < tensor.bytes(); ++i) bytes[i] = static_cast<std::uint8_t>(random.below(i, 251));
  return tensor;
}

}  // namespace

TEST_CASE_ON("rows are gathered in any order, also twice, of every element type and size", Where,
             MUSTER_TEST_DEVICES) {
  Context context(Where::device());
  const Tensor rows = test::integers({4, 0, 4, 8, 3});
  for (const DType dtype : {DType::Float32, DType::UInt8, DType::Int64})
    for (const Shape& row : {Shape{}, Shape{1}, Shape{3}, Shape{16}, Shape{1, 28, 28}}) {
      CAPTURE(toString(dtype));
      CAPTURE(row.toString());
      const Tensor source = numbered(row.prepend(9), dtype);
      Tensor target = Tensor::empty(row.prepend(5), dtype, Where::device());
      gatherRows(copyTo(source, Where::device()), copyTo(rows, Where::device()), target, context);
      context.synchronize();
      const Tensor result = copyTo(target, Device::cpu());
      for (std::int64_t i = 0; i < 5; ++i) {
        const Tensor expected = source.rows(rows.data<std::int64_t>()[i], rows.data<std::int64_t>()[i] + 1);
        CHECK(std::memcmp(result.rows(i, i + 1).raw(), expected.raw(), expected.bytes()) == 0);
      }
    }
}

TEST_CASE("gathering refuses tensors that do not fit, and rows that do not exist") {
  Context context;
  const Tensor source = numbered({4, 2}, DType::Float32);
  Tensor target = Tensor::zeros({2, 2}), narrow = Tensor::zeros({2, 1});
  CHECK_REFUSED(gatherRows(source, test::integers({0, 4}), target, context),
                "gather: float32 [4, 2] on cpu has no row 4");
  CHECK_CONTAINS(test::thrown<InvalidArgument>([&] {
                   gatherRows(source, test::integers({-1, 0}), target, context);
                 }),
                 "no row -1");
  CHECK_THROWS_AS(gatherRows(source, test::integers({0, 1}), narrow, context), InvalidArgument);
  CHECK_THROWS_AS(gatherRows(source, Tensor::zeros({2}), target, context), InvalidArgument);
  CHECK_THROWS_AS(gatherRows(source, test::integers({0, 1, 2}), target, context), InvalidArgument);
}
