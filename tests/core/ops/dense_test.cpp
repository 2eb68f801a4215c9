#include "muster/core/ops/dense.h"

#include <unistd.h>

#include <csignal>
#include <stop_token>

#include "muster/core/base/interrupt.h"
#include "tests/core/ops/test.h"
#include "tests/support/child_process.h"
#include "tests/support/cpu_bfloat16.h"
#include "tests/support/reference_ops.h"

namespace muster {
namespace {

using test::Array;
namespace reference = test::reference;

/// A dense layer's inputs; without a bias, it is 0.
struct DenseInputs {
  DenseInputs(const DenseShape& s, std::mt19937_64& random, bool withBias = true)
      : x(test::randomArray({s.batch, s.inFeatures}, random)),
        weight(test::randomArray({s.outFeatures, s.inFeatures}, random)),
        bias(withBias ? test::randomArray({s.outFeatures}, random) : Array({s.outFeatures})),
        gradY(test::randomArray({s.batch, s.outFeatures}, random)) {}
  Array x, weight, bias, gradY;
};

/// A plan's results; the outputs were NaN before.
struct DenseResults {
  DenseResults(DensePlan& plan, const DenseInputs& in, Context& context, bool withBias = true) {
    const auto there = [&](const Array& array) { return test::toTensor(array, context.device()); };
    const auto nan = [&](const Array& array) { return test::nanTensor(array.shape, context.device()); };
    const Tensor x = there(in.x), weight = there(in.weight), gradY = there(in.gradY);
    y = nan(in.gradY);
    gradX = nan(in.x);
    gradWeight = nan(in.weight);
    if (withBias) gradBias = nan(in.bias);
    plan.forward(x, weight, withBias ? there(in.bias) : Tensor(), y);
    plan.backwardData(gradY, weight, gradX);
    plan.backwardWeights(x, gradY, gradWeight, gradBias);
    context.synchronize();
  }
  Tensor y, gradX, gradWeight, gradBias;
};

/// All but the gradient of the bias, which has no products.
void checkSameBits(const DenseResults& a, const DenseResults& b) {
  CHECK(test::sameBits(a.y, b.y));
  CHECK(test::sameBits(a.gradX, b.gradX));
  CHECK(test::sameBits(a.gradWeight, b.gradWeight));
}

/// @param productError  relative rounding error of the products' factors.
void checkNear(const DenseResults& got, const DenseInputs& in, double productError) {
  const auto tolerance = [&](std::int64_t terms) { return test::productSumError(terms, productError); };
  const std::int64_t batch = in.gradY.shape[0];
  const auto [gradWeight, gradBias] = reference::denseBackwardWeights(in.x, in.gradY);
  // The bias varies as much as three products.
  CHECK(test::maxDifference(got.y, reference::dense(in.x, in.weight, in.bias)) <
        tolerance(in.x.shape[1] + 3));
  CHECK(test::maxDifference(got.gradX, reference::denseBackwardData(in.gradY, in.weight)) <
        tolerance(in.gradY.shape[1]));
  CHECK(test::maxDifference(got.gradWeight, gradWeight) < tolerance(batch));
  if (got.gradBias.defined())
    CHECK(test::maxDifference(got.gradBias, gradBias) < test::sumError(batch, test::kUniform));
}

TEST_CASE_ON(
    "dense layers agree with the reference over shapes and threads, with the same bits at each run on a CPU",
    Where, MUSTER_TEST_MATH_MODES, test::OnCpuInBFloat16) {
  std::mt19937_64 random(test::freshSeed());
  // The last four test the gradient of the bias on a GPU: sums in several parts with a shorter last one, a
  // partial strip of columns, one column, and more strips than a grid has blocks. The small ones test panels
  // of 16 and 32 columns, full and partial, and remaining rows. The first one tests rows that are 1 KiB
  // apart.
  const DenseShape shapes[] = {{260, 256, 256}, {1, 1, 1},    {7, 3, 5},     {8, 1, 8},     {32, 64, 64},
                               {43, 29, 77},    {11, 17, 48}, {128, 80, 50}, {33, 500, 10}, {2, 130, 257},
                               {2077, 2, 37},   {9001, 1, 1}, {2, 1, 32790}, {128, 300, 70}};
  for (const auto& s : shapes)
    for (const int threads : test::threadCounts<Where>({1, 2, 3}))
      for (bool withBias : {true, false}) {
        INFO("batch ", s.batch, ", inFeatures ", s.inFeatures, ", outFeatures ", s.outFeatures, ", threads ",
             threads, ", withBias ", withBias);
        Context context(Where::device(), Where::options(threads));
        ContextScope scope(context);
        const auto plan = planDense(s, context);
        const DenseInputs in(s, random, withBias);
        const DenseResults got(*plan, in, context, withBias);
        checkNear(got, in, Where::kProductError);
        if (!Where::device().isCpu()) continue;
        const DenseResults again(*plan, in, context, withBias);
        checkSameBits(got, again);
        if (withBias) CHECK(test::sameBits(got.gradBias, again.gradBias));
      }
}

TEST_CASE_ON("a dense layer in bf16 rounds its factors to the nearest, and adds in float32", Where,
             test::OnCpuInBFloat16) {
  std::mt19937_64 random(test::freshSeed());
  const DenseShape shapes[] = {{1, 1, 1},       {7, 3, 5},      {32, 64, 64},
                               {128, 800, 500}, {128, 500, 10}, {1, 300, 10}};
  for (const auto& s : shapes)
    for (const int threads : {1, 2}) {
      INFO("batch ", s.batch, ", inFeatures ", s.inFeatures, ", threads ", threads);
      const DenseInputs fine(s, random);
      DenseInputs coarse = fine;
      for (Array* factor : {&coarse.x, &coarse.weight, &coarse.gradY}) *factor = test::toBFloat16(*factor);
      Context context(Device::cpu(), {.threads = threads, .mathMode = MathMode::BFloat16});
      ContextScope scope(context);
      const auto plan = planDense(s, context), second = planDense(s, context);
      const DenseResults got(*plan, coarse, context);
      checkNear(got, coarse, 0);
      checkSameBits(got, DenseResults(*plan, fine, context));
      checkSameBits(got, DenseResults(*second, fine, context));
    }
}

TEST_CASE("dense plans refuse sizes and tensors that do not fit by name") {
  Context context;
  CHECK_REFUSED(planDense({0, 2, 3}, context),
                "dense: expected positive sizes, got batch 0, 2 inputs and 3 outputs");
  CHECK_THROWS_AS(planDense({1, -1, 3}, context), InvalidArgument);
  auto plan = planDense({4, 2, 3}, context);
  Tensor x = Tensor::zeros({4, 2}), weight = Tensor::zeros({3, 2}), y = Tensor::zeros({4, 3});
  CHECK_REFUSED(plan->forward(y, weight, {}, y),
                "dense: x is float32 [4, 3] on cpu, expected float32 [4, 2] on cpu");
  CHECK_THROWS_AS(plan->forward(x, weight, x, y), InvalidArgument);
  CHECK_THROWS_AS(plan->backwardData(y, weight, y), InvalidArgument);
  CHECK_THROWS_AS(plan->backwardWeights(x, y, x, x), InvalidArgument);
}

/// Computes a product again and again while signals arrive. @return "" if each result has the same bits.
std::string underSignals() {
  Context context;
  ContextScope scope(context);
  const DenseShape shape{128, 800, 500};
  const auto plan = planDense(shape, context);
  const Tensor x = Tensor::zeros({shape.batch, shape.inFeatures}),
               weight = Tensor::zeros({shape.outFeatures, shape.inFeatures});
  for (const Tensor& tensor : {x, weight})
    for (std::int64_t i = 0; i < tensor.elements(); ++i)
      tensor.data<float>()[i] = static_cast<float>(i % 17) - 8;
  Tensor first = Tensor::zeros({shape.batch, shape.outFeatures}), y = Tensor::zeros(first.shape());
  plan->forward(x, weight, Tensor(), first);
  const Interrupt interrupt("dense_test: a signal");
  std::atomic<int> sent{0};
  const std::jthread sender([&](const std::stop_token& stop) {
    for (; !stop.stop_requested(); ++sent) {
      ::kill(::getpid(), SIGXCPU);  // does not end the program, however often it comes
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  });
  while (sent < 5'000) {
    plan->forward(x, weight, Tensor(), y);
    if (std::memcmp(first.raw(), y.raw(), y.bytes()) != 0) return "other bits";
  }
  return "";
}

TEST_CASE("signals that arrive during a product overwrite no memory") {
  CHECK(test::inChild([] {
          std::signal(SIGXCPU, SIG_DFL);  // may be ignored here
          return "computed" + underSignals();
        }) == "computed");
}

}  // namespace
}  // namespace muster
