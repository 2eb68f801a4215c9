#include "muster/core/ops/upsample2d.h"

#include "tests/core/ops/test.h"
#include "tests/support/reference_ops.h"

namespace muster {
namespace {

using test::Array;

TEST_ON_DEVICES("up-sampling agrees with the reference in every layout, and gradients are its derivatives") {
  std::mt19937_64 random(test::freshSeed());
  for (const std::int64_t channels : {17, 8})  // 8: in fours, on a GPU
    for (const auto mode : {UpsampleMode::Nearest, UpsampleMode::Bilinear})
      for (const auto& [height, width] : {std::pair{6, 4}, {3, 6}, {9, 2}, {12, 10}})
        for (const Layout layout : Where::layouts()) {
          INFO(nameOf(mode), ", ", nameOf(layout));
          const Shape shape{2, channels, 3, 2}, large{2, channels, height, width};
          const Array x = test::randomArray(shape, random), g = test::randomArray(large, random);
          // A pixel contributes to up to 2 * factor outputs in each direction; its weights' mean square is
          // 1/3.
          const std::int64_t terms = 4 * (height / shape[2]) * (width / shape[3]);
          test::Place<Where> on(2);
          Tensor out = on.nan(large, layout), back = on.nan(shape, layout);
          upsample2d(mode, on(x, layout), out, on.context);
          upsample2dBackward(mode, on(g, layout), back, on.context);
          // Two shares, and two products and sums.
          CHECK(test::maxDifference(on.get(out), test::reference::upsample2d(mode, x, height, width)) <
                test::roundings(6));
          CHECK(test::maxDifference(back, test::reference::upsample2dBackward(mode, g, shape[2], shape[3])) <
                test::sumError(terms, test::kUniform / 3, 4 * test::kRounding));
          for (const Tensor& result : {out, back}) CHECK(test::paddingIsZero(result));
        }
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
