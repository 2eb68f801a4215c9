#include "muster/core/ops/upsample2d.h"

#include "tests/support/devices.h"
#include "tests/support/reference_ops.h"
#include "tests/support/rounding.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using test::Array;

template <typename Where>
void checkAgainstReference(std::int64_t channels, std::mt19937_64& random) {
  const Device device = Where::device();
  const Shape shape{2, channels, 3, 2};
  const Array x = test::randomArray(shape, random);
  for (const auto mode : {UpsampleMode::Nearest, UpsampleMode::Bilinear})
    for (const auto& [height, width] : {std::pair{6, 4}, {3, 6}, {9, 2}, {12, 10}}) {
      CAPTURE(nameOf(mode));
      const Shape large{2, channels, height, width};
      const Array g = test::randomArray(large, random);
      const Array y = test::reference::upsample2d(mode, x, height, width),
                  gradX = test::reference::upsample2dBackward(mode, g, shape[2], shape[3]);
      // A pixel contributes to up to 2 * factor outputs in each direction; its weights' mean square is 1/3.
      const std::int64_t terms = 4 * (height / shape[2]) * (width / shape[3]);
      for (const Layout layout : Where::layouts()) {
        CAPTURE(nameOf(layout));
        Context context(device, {.threads = 2});
        const ContextScope scope(context);
        Tensor out = test::nanTensor(large, layout, device), back = test::nanTensor(shape, layout, device);
        upsample2d(mode, test::toTensor(x, layout, device), out, context);
        upsample2dBackward(mode, test::toTensor(g, layout, device), back, context);
        context.synchronize();
        CHECK(test::maxDifference(out, y) < test::roundings(6));  // two shares, and two products and sums
        CHECK(test::paddingIsZero(out));
        CHECK(test::maxDifference(back, gradX) <
              test::sumError(terms, test::kUniform / 3, 4 * test::kRounding));
        CHECK(test::paddingIsZero(back));
      }
    }
}

TEST_CASE_ON("up-sampling agrees with the reference in every layout, and gradients are its derivatives",
             Where, MUSTER_TEST_DEVICES) {
  std::mt19937_64 random(test::freshSeed());
  checkAgainstReference<Where>(17, random);
  checkAgainstReference<Where>(8, random);  // in fours, on a GPU
}

TEST_CASE("an up-sampled row equals one worked out by hand") {
  Context context;
  const Tensor x = Tensor::of({1, 3}, {1, 1, 1, 2});
  Tensor y = test::nanTensor({1, 1, 1, 4});
  upsample2d(UpsampleMode::Bilinear, x, y, context);
  CHECK(test::maxError(y, Array({1, 1, 1, 4}, {1, 1.5, 2.5, 3})) == 0);
  upsample2d(UpsampleMode::Nearest, x, y, context);
  CHECK(test::maxError(y, Array({1, 1, 1, 4}, {1, 1, 3, 3})) == 0);
}

TEST_CASE("up-sampling refuses sizes that are not multiples by name") {
  Context context;
  const Tensor x = Tensor::zeros({1, 1, 2, 3});
  Tensor y = Tensor::zeros({1, 1, 5, 6});
  CHECK_REFUSED(
      upsample2d(UpsampleMode::Nearest, x, y, context),
      "upsample2d: float32 [1, 1, 5, 6] on cpu is not float32 [1, 1, 2, 3] on cpu enlarged by whole factors");
}

}  // namespace
}  // namespace muster
