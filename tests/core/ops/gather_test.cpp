#include "muster/core/ops/gather.h"

#include "muster/core/base/random.h"
#include "tests/core/ops/test.h"
#include "tests/support/batch_of.h"

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

TEST_ON_DEVICES("rows are gathered in any order, also twice, of every element type and size") {
  test::Place<Where> on;
  const Tensor rows = test::integers({4, 0, 4, 8, 3});
  for (const DType dtype : {DType::Float32, DType::UInt8, DType::Int64})
    for (const Shape& row : {Shape{}, Shape{1}, Shape{3}, Shape{16}, Shape{1, 28, 28}}) {
      INFO(toString(dtype), ", ", row.toString());
      const Tensor source = numbered(row.prepend(9), dtype);
      Tensor target = Tensor::empty(row.prepend(5), dtype, Where::device());
      gatherRows(on(source), on(rows), target, on.context);
      const Tensor result = on.get(target);
      for (std::int64_t i = 0; i < 5; ++i) {
        const std::int64_t from = rows.data<std::int64_t>()[i];
        CHECK(test::sameBits(result.rows(i, i + 1), source.rows(from, from + 1)));
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
