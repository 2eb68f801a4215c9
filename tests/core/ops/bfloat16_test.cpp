// Convolutions and dense layers in MathMode::BFloat16 on the CPU: factors are rounded to bf16, sums are
// float32.
#include <bit>

#include "muster/core/backend/cpu/conv/direct_conv2d.h"
#include "muster/core/ops/conv2d.h"
#include "muster/core/ops/dense.h"
#include "tests/support/cpu_bfloat16.h"
#include "tests/support/reference_ops.h"
#include "tests/support/rounding.h"
#include "tests/support/shapes2d.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using test::Array;
using test::conv;
namespace reference = test::reference;

/// Rounds to the nearest number with eight significant bits, ties to even.
double rounded(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  const std::uint32_t up = bits + 0x7fff + ((bits >> 16) & 1);
  return std::bit_cast<float>(up & 0xffff0000);
}

Array rounded(Array array) {
  for (double& value : array.values) value = rounded(value);
  return array;
}

ContextOptions inBFloat16(int threads) {
  return {.threads = threads, .mathMode = MathMode::BFloat16};
}

struct Results {
  Tensor y, gradX, gradWeight, gradBias;
};

/// Checks that all results except the gradient of the bias have the same bits.
void checkSame(const Results& one, const Results& other) {
  CHECK(test::sameBits(one.y, other.y));
  CHECK(test::sameBits(one.gradX, other.gradX));
  CHECK(test::sameBits(one.gradWeight, other.gradWeight));
}

struct Factors {
  Array x, weight, gradY;
};

Factors rounded(const Factors& f) {
  return {rounded(f.x), rounded(f.weight), rounded(f.gradY)};
}

/// @param terms  number of terms in the sums of y, gradX and gradWeight.
void checkNear(const Results& got, const Results& exact, const std::array<std::int64_t, 3>& terms) {
  CHECK(test::maxDifference(got.y, test::toArray(exact.y)) < test::productSumError(terms[0]));
  CHECK(test::maxDifference(got.gradX, test::toArray(exact.gradX)) < test::productSumError(terms[1]));
  CHECK(test::maxDifference(got.gradWeight, test::toArray(exact.gradWeight)) <
        test::productSumError(terms[2]));
}

Results convolve(const Conv2dShape& s, Conv2dPlan& plan, const Factors& f, const Array& bias) {
  const Tensor x = test::toTensor(f.x, plan.inputLayout()), weight = test::toTensor(f.weight);
  const Tensor gradY = test::toTensor(f.gradY, plan.outputLayout());
  Results r{test::nanTensor(s.output(), plan.outputLayout()), test::nanTensor(s.input(), plan.inputLayout()),
            test::nanTensor(s.weight()), test::nanTensor({s.outChannels})};
  plan.forward(x, weight, test::toTensor(bias), r.y);
  plan.backwardData(gradY, weight, r.gradX);
  plan.backwardWeights(x, gradY, r.gradWeight, r.gradBias);
  return r;
}

const Conv2dShape kShapes[] = {
    conv({16, 1, 12, 13}, 20, {.kernel = 5}),  // a first layer
    conv({37, 20, 8, 9}, 50, {.kernel = 5}),
    conv({33, 7, 9, 5}, 3, {.kernel = 3, .padding = 1}),
    conv({4, 32, 14, 9}, 48, {.kernel = 3, .padding = 1}),
    conv({2, 17, 9, 9}, 33, {.kernel = 3, .stride = 2}),
    conv({3, 32, 7, 6}, 64, {.kernel = 3, .groups = 2}),
    conv({5, 64, 6, 6}, 128, {.stride = 2}),
};

TEST_CASE_ON("a convolution in bf16 rounds its factors to the nearest, and adds in float32", Where,
             test::OnCpuInBFloat16) {
  std::mt19937_64 random(test::freshSeed());
  for (const auto& s : kShapes)
    for (const int threads : {1, 2}) {
      CAPTURE(s.weight().toString());
      CAPTURE(threads);
      const Factors factors{test::randomArray(s.input(), random), test::randomArray(s.weight(), random),
                            test::randomArray(s.output(), random)};
      const Factors coarse = rounded(factors);
      const Array bias = test::randomArray({s.outChannels}, random);
      const auto [gradWeight, unused] = reference::conv2dBackwardWeights(s, coarse.x, coarse.gradY);
      const auto [alsoUnused, gradBias] = reference::conv2dBackwardWeights(s, factors.x, factors.gradY);
      const Results exact{test::toTensor(reference::conv2d(s, coarse.x, coarse.weight, bias)),
                          test::toTensor(reference::conv2dBackwardData(s, coarse.gradY, coarse.weight)),
                          test::toTensor(gradWeight), test::toTensor(gradBias)};
      const std::int64_t taps = s.kernel[0] * s.kernel[1];
      // The bias varies as much as three products.
      const std::array terms{s.inChannels / s.groups * taps + 3, s.outChannels / s.groups * taps,
                             s.output().elements() / s.outChannels};
      Context context(Device::cpu(), inBFloat16(threads));
      ContextScope scope(context);
      std::vector<Conv2dChoice> choices{Conv2dChoice::Auto, Conv2dChoice::RowMajor,
                                        Conv2dChoice::ChannelsLast, Conv2dChoice::ChannelBlocks};
      if (cpu::directConv2dSupports(s, context)) choices.push_back(Conv2dChoice::Direct);
      for (const auto choice : choices) {
        const auto plan = planConv2d(s, context, choice), second = planConv2d(s, context, choice);
        CAPTURE(plan->implementation());
        const Results got = convolve(s, *plan, factors, bias);
        checkNear(got, exact, terms);
        // The bias gradient has no products, so there is no rounding to bf16.
        CHECK(test::maxDifference(got.gradBias, test::toArray(exact.gradBias)) <
              test::sumError(terms[2], test::kUniform));
        checkSame(got, convolve(s, *plan, coarse, bias));
        checkSame(got, convolve(s, *second, factors, bias));
      }
    }
}

TEST_CASE_ON("a dense layer in bf16 rounds its factors to the nearest, and adds in float32", Where,
             test::OnCpuInBFloat16) {
  std::mt19937_64 random(test::freshSeed());
  const DenseShape shapes[] = {{1, 1, 1},       {7, 3, 5},      {32, 64, 64},
                               {128, 800, 500}, {128, 500, 10}, {1, 300, 10}};
  for (const auto& s : shapes)
    for (const int threads : {1, 2}) {
      CAPTURE(s.batch);
      CAPTURE(s.inFeatures);
      CAPTURE(threads);
      const Factors factors{test::randomArray({s.batch, s.inFeatures}, random),
                            test::randomArray({s.outFeatures, s.inFeatures}, random),
                            test::randomArray({s.batch, s.outFeatures}, random)};
      const Factors coarse = rounded(factors);
      const Array bias = test::randomArray({s.outFeatures}, random);
      const auto [gradWeight, unused] = reference::denseBackwardWeights(coarse.x, coarse.gradY);
      const Results exact{test::toTensor(reference::dense(coarse.x, coarse.weight, bias)),
                          test::toTensor(reference::denseBackwardData(coarse.gradY, coarse.weight)),
                          test::toTensor(gradWeight),
                          {}};
      Context context(Device::cpu(), inBFloat16(threads));
      ContextScope scope(context);
      const auto plan = planDense(s, context), second = planDense(s, context);
      const auto run = [&](DensePlan& planned, const Factors& f) {
        const Tensor x = test::toTensor(f.x), weight = test::toTensor(f.weight),
                     gradY = test::toTensor(f.gradY);
        Results r{test::nanTensor(gradY.shape()), test::nanTensor(x.shape()), test::nanTensor(weight.shape()),
                  test::nanTensor({s.outFeatures})};
        planned.forward(x, weight, test::toTensor(bias), r.y);
        planned.backwardData(gradY, weight, r.gradX);
        planned.backwardWeights(x, gradY, r.gradWeight, r.gradBias);
        return r;
      };
      const Results got = run(*plan, factors);
      checkNear(got, exact, {s.inFeatures + 3, s.outFeatures, s.batch});
      checkSame(got, run(*plan, coarse));
      checkSame(got, run(*second, factors));
    }
}

}  // namespace
}  // namespace muster
