#include "muster/core/ops/pad2d.h"

#include "tests/support/devices.h"
#include "tests/support/reference_ops.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using test::Array;

TEST_CASE_ON("images are padded with zeros in every layout", Where, MUSTER_TEST_DEVICES) {
  std::mt19937_64 random(test::freshSeed());
  for (const std::int64_t channels : {18, 20}) {  // in fours, on a GPU, or not
    const Shape shape{3, channels, 4, 5};
    const Array x = test::randomArray(shape, random);
    for (const Padding2d& padding : {Padding2d{1, 2, 3, 0}, Padding2d{0, 0, 0, 1}, Padding2d{0}})
      for (const Layout layout : Where::layouts()) {
        CAPTURE(channels);
        CAPTURE(nameOf(layout));
        const Device device = Where::device();
        Context context(device, {.threads = 2});
        const ContextScope scope(context);
        const Array expected = test::reference::pad2d(x, padding);
        const Tensor in = test::toTensor(x, layout, device);
        Tensor y = test::nanTensor(padded2d(shape, padding), layout, device),
               back = test::nanTensor(shape, layout, device);
        pad2d(in, padding, y, context);
        context.synchronize();
        CHECK(test::maxError(y, expected) == 0);
        CHECK(test::paddingIsZero(y));
        pad2dBackward(y, padding, back, context);
        context.synchronize();
        CHECK(test::sameBits(back, in));
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
