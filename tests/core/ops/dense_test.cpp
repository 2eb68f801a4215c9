#include "muster/core/ops/dense.h"

#include <unistd.h>

#include <csignal>
#include <stop_token>

#include "muster/core/base/interrupt.h"
#include "tests/support/child_process.h"
#include "tests/support/cpu_bfloat16.h"
#include "tests/support/devices.h"
#include "tests/support/reference_ops.h"
#include "tests/support/rounding.h"
#include "tests/support/test.h"

namespace muster {
namespace {

namespace reference = test::reference;

TEST_CASE_ON("dense layers agree with the reference over shapes and threads", Where, MUSTER_TEST_MATH_MODES,
             test::OnCpuInBFloat16) {
  const Device device = Where::device();
  const auto tolerance = [](std::int64_t terms) {
    return test::productSumError(terms, Where::kProductError);
  };
  std::mt19937_64 random(test::freshSeed());
  // The last four test the gradient of the bias on a GPU: sums in several parts with a shorter last one, a
  // partial strip of columns, one column, and more strips than a grid has blocks. The small ones test panels
  // of 16 and 32 columns, full and partial, and remaining rows. The first one tests rows that are 1 KiB
  // apart.
  const DenseShape shapes[] = {{260, 256, 256}, {1, 1, 1},    {7, 3, 5},     {8, 1, 8},     {32, 64, 64},
                               {43, 29, 77},    {11, 17, 48}, {128, 80, 50}, {33, 500, 10}, {2, 130, 257},
                               {2077, 2, 37},   {9001, 1, 1}, {2, 1, 32790}};
  for (const auto& s : shapes)
    for (const int threads : test::threadCounts<Where>({1, 2, 3}))
      for (bool withBias : {true, false}) {
        CAPTURE(s.batch);
        CAPTURE(s.inFeatures);
        CAPTURE(s.outFeatures);
        CAPTURE(threads);
        CAPTURE(withBias);
        ContextOptions options = Where::options();
        options.threads = threads;
        Context context(device, options);
        ContextScope scope(context);
        const auto x = test::randomArray({s.batch, s.inFeatures}, random);
        const auto weight = test::randomArray({s.outFeatures, s.inFeatures}, random);
        const auto bias =
            withBias ? test::randomArray({s.outFeatures}, random) : test::Array({s.outFeatures});
        const auto gradY = test::randomArray({s.batch, s.outFeatures}, random);
        auto plan = planDense(s, context);

        const auto there = [&](const test::Array& array) { return test::toTensor(array, device); };
        Tensor y = test::nanTensor({s.batch, s.outFeatures}, device);
        plan->forward(there(x), there(weight), withBias ? there(bias) : Tensor(), y);
        context.synchronize();
        // The bias varies as much as three products.
        CHECK(test::maxDifference(y, reference::dense(x, weight, bias)) < tolerance(s.inFeatures + 3));

        Tensor gradX = test::nanTensor({s.batch, s.inFeatures}, device);
        plan->backwardData(there(gradY), there(weight), gradX);
        context.synchronize();
        CHECK(test::maxDifference(gradX, reference::denseBackwardData(gradY, weight)) <
              tolerance(s.outFeatures));

        Tensor gradWeight = test::nanTensor({s.outFeatures, s.inFeatures}, device), gradBias;
        if (withBias) gradBias = test::nanTensor({s.outFeatures}, device);
        plan->backwardWeights(there(x), there(gradY), gradWeight, gradBias);
        context.synchronize();
        const auto [expectedWeight, expectedBias] = reference::denseBackwardWeights(x, gradY);
        CHECK(test::maxDifference(gradWeight, expectedWeight) < tolerance(s.batch));
        if (withBias)
          CHECK(test::maxDifference(gradBias, expectedBias) < test::sumError(s.batch, test::kUniform));
      }
}

TEST_CASE("a dense plan gives the same bits at each run") {
  std::mt19937_64 random(test::freshSeed());
  for (int threads : {1, 2, 3}) {
    Context context(Device::cpu(), {.threads = threads});
    ContextScope scope(context);
    auto plan = planDense({128, 300, 70}, context);
    const Tensor x = test::toTensor(test::randomArray({128, 300}, random));
    const Tensor weight = test::toTensor(test::randomArray({70, 300}, random));
    const Tensor gradY = test::toTensor(test::randomArray({128, 70}, random));
    Tensor y[2], gradX[2], gradWeight[2], gradBias[2];
    for (int run = 0; run < 2; ++run) {
      y[run] = test::nanTensor({128, 70});
      gradX[run] = test::nanTensor({128, 300});
      gradWeight[run] = test::nanTensor({70, 300});
      gradBias[run] = test::nanTensor({70});
      plan->forward(x, weight, {}, y[run]);
      plan->backwardData(gradY, weight, gradX[run]);
      plan->backwardWeights(x, gradY, gradWeight[run], gradBias[run]);
    }
    for (const Tensor* both : {y, gradX, gradWeight, gradBias}) CHECK(test::sameBits(both[0], both[1]));
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
