#include "muster/core/ops/pad2d.h"

#include "tests/core/ops/test.h"
#include "tests/support/reference_ops.h"

namespace muster {
namespace {

using test::Array;

TEST_ON_DEVICES("images are padded with zeros in every layout") {
  std::mt19937_64 random(test::freshSeed());
  for (const std::int64_t channels : {18, 20}) {  // in fours, on a GPU, or not
    const Shape shape{3, channels, 4, 5};
    const Array x = test::randomArray(shape, random);
    for (const Padding2d& padding : {Padding2d{1, 2, 3, 0}, Padding2d{0, 0, 0, 1}, Padding2d{0}})
      for (const Layout layout : Where::layouts()) {
        INFO("channels ", channels, ", ", nameOf(layout));
        test::Place<Where> on(2);
        Tensor y = on.nan(padded2d(shape, padding), layout), back = on.nan(shape, layout);
        pad2d(on(x, layout), padding, y, on.context);
        pad2dBackward(y, padding, back, on.context);
        CHECK(test::maxError(on.get(y), test::reference::pad2d(x, padding)) == 0);
        CHECK(test::paddingIsZero(y));
        CHECK(test::sameBits(back, on(x, layout)));
      }
  }
}

TEST_CASE("invalid paddings and shapes are refused by name") {
  Context context;
  CHECK_REFUSED(padded2d({3, 4}, 0), "pad2d: expected [N, C, H, W], got [3, 4]");
  CHECK_REFUSED(padded2d({1, 1, 3, 4}, {0, 0, -1, 0}),
                "pad2d: padding cannot be negative, got [0, 0, -1, 0]");
  Tensor x = Tensor::zeros({1, 1, 3, 3}), y = Tensor::zeros({1, 1, 4, 4});
  CHECK_THROWS_AS(pad2d(x, {1, 1, 0, 0}, y, context), InvalidArgument);
  CHECK_THROWS_AS(pad2dBackward(y, {1, 1, 0, 0}, x, context), InvalidArgument);
}

}  // namespace
}  // namespace muster
