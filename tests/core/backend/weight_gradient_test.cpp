#include "muster/core/backend/cpu/weight_gradient.h"

#include "tests/support/arrays.h"
#include "tests/support/rounding.h"
#include "tests/support/test.h"

namespace muster::cpu {
namespace {

TEST_CASE("a weight's gradient is the sum over rows, at any distance of the rows, on any number of threads") {
  std::mt19937_64 random(test::freshSeed());
  struct Case {
    std::int64_t rows, out, stride, in;
  };
  // Neither factor is copied, then gradY, x, both; a part of a wider gradY; one block of rows and several;
  // no row.
  const Case cases[] = {{50, 20, 20, 30},     {40, 256, 256, 130}, {300, 130, 130, 256}, {600, 256, 256, 256},
                        {257, 200, 768, 256}, {256, 64, 512, 512}, {0, 20, 20, 30}};
  for (const auto& c : cases)
    for (const int threads : {1, 3}) {
      INFO("rows ", c.rows, ", out ", c.out, ", stride ", c.stride, ", in ", c.in, ", threads ", threads);
      Context context(Device::cpu(), {.threads = threads});
      const ContextScope scope(context);
      const Tensor gradY = test::toTensor(test::randomArray({c.rows + 1, c.stride}, random));
      const Tensor x = test::toTensor(test::randomArray({c.rows + 1, c.in}, random));
      Tensor gradient = test::nanTensor({c.out, c.in}), again = test::nanTensor({c.out, c.in});
      WeightGradient product(c.rows, c.out, c.stride, c.in, context);
      product.run(gradY.data<float>(), x.data<float>(), gradient.data<float>());
      test::Array expected({c.out, c.in});
      for (std::int64_t n = 0; n < c.rows; ++n)
        for (std::int64_t o = 0; o < c.out; ++o)
          for (std::int64_t i = 0; i < c.in; ++i)
            expected.values[static_cast<std::size_t>(o * c.in + i)] +=
                static_cast<double>(gradY.data<float>()[n * c.stride + o]) * x.data<float>()[n * c.in + i];
      CHECK(test::maxDifference(gradient, expected) <=
            test::productSumError(std::max<std::int64_t>(1, c.rows)));
      product.run(gradY.data<float>(), x.data<float>(), again.data<float>());
      CHECK(test::sameBits(gradient, again));
    }
}

}  // namespace
}  // namespace muster::cpu
