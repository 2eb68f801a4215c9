#include "muster/core/ops/conv2d.h"

#include "muster/built.h"
#include "muster/core/backend/cpu/bfloat16.h"
#include "muster/core/backend/cpu/conv/direct_conv2d.h"
#include "muster/core/backend/cpu/conv/pixel_conv2d.h"
#include "muster/core/backend/cpu/conv/small_batch_conv2d.h"
#include "muster/core/backend/cpu/conv/winograd_conv2d.h"
#include "muster/core/backend/cpu/simd.h"
#include "muster/core/backend/cpu/state.h"
#include "muster/core/backend/cuda/direct_conv2d.h"
#include "muster/core/backend/cuda/implicit_gemm_conv2d.h"
#include "muster/core/backend/cuda/spoil_workspace.h"
#include "tests/core/ops/test.h"
#include "tests/support/cpu_bfloat16.h"
#include "tests/support/reference_ops.h"
#include "tests/support/shapes2d.h"
#include "tests/support/skip.h"

namespace muster {
namespace {

using test::Array;
using test::conv;
namespace reference = test::reference;

/// Draws inputs and sizes.
struct Draw {
  std::int64_t operator()(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  }
  std::mt19937_64 random{test::freshSeed()};
};

/// Every choice that supports the shape on this machine.
std::vector<Conv2dChoice> choicesFor(const Conv2dShape& shape, Context& context) {
  if (!context.device().isCpu()) {
    std::vector<Conv2dChoice> choices{Conv2dChoice::Auto, Conv2dChoice::RowMajor, Conv2dChoice::ChannelsLast};
    if (shape.groups == 1) choices.push_back(Conv2dChoice::PaddedChannels);
    if constexpr (kCudaBuilt) {
      if (cuda::directConv2dSupports(shape)) choices.push_back(Conv2dChoice::Direct);
      if (cuda::implicitGemmConv2dSupports(shape, context)) choices.push_back(Conv2dChoice::ImplicitGemm);
    }
    return choices;
  }
  std::vector<Conv2dChoice> choices{Conv2dChoice::Auto, Conv2dChoice::RowMajor, Conv2dChoice::ChannelsLast,
                                    Conv2dChoice::ChannelBlocks};
  if (cpu::directConv2dSupports(shape, context)) choices.push_back(Conv2dChoice::Direct);
  if (cpu::winogradConv2dSupports(shape, context)) choices.push_back(Conv2dChoice::Winograd);
  return choices;
}

/// A convolution's random inputs.
struct ConvInputs {
  Conv2dShape shape;
  Array x, weight, bias, gradY;

  ConvInputs(const Conv2dShape& s, std::mt19937_64& random)
      : shape(s),
        x(test::randomArray(s.input(), random)),
        weight(test::randomArray(s.weight(), random)),
        bias(test::randomArray({s.outChannels}, random)),
        gradY(test::randomArray(s.output(), random)) {}
};

/// Inputs with the expected results. Terms: the number of products in each result's sum.
struct Case : ConvInputs {
  Array y, gradX, gradWeight, gradBias;

  Case(const Conv2dShape& s, std::mt19937_64& random) : Case(ConvInputs(s, random)) {}
  explicit Case(const ConvInputs& inputs)
      : ConvInputs(inputs),
        y(reference::conv2d(shape, x, weight, bias)),
        gradX(reference::conv2dBackwardData(shape, gradY, weight)),
        gradWeight(shape.weight()),
        gradBias({shape.outChannels}) {
    std::tie(gradWeight, gradBias) = reference::conv2dBackwardWeights(shape, x, gradY);
  }

  std::int64_t taps() const { return shape.kernel[0] * shape.kernel[1]; }
  std::int64_t forwardTerms() const {  // the bias varies as much as three products
    return shape.inChannels / shape.groups * taps() + 3;
  }
  std::int64_t dataTerms() const { return shape.outChannels / shape.groups * taps(); }
  std::int64_t weightTerms() const { return gradY.shape.elements() / shape.outChannels; }
  /// Winograd's algorithm has the rounding errors of whole tiles of 4x4 pixels.
  std::int64_t weightTermsInTiles() const {
    return shape.batch * ((gradY.shape[2] + 3) / 4 * 4) * ((gradY.shape[3] + 3) / 4 * 4);
  }
};

/// Fills the memory that a context's plans share with NaN, so that a plan that reads what it has not written
/// gives NaN.
void spoilWorkspace(Context& context) {
  if (!context.device().isCpu()) {
    if constexpr (kCudaBuilt) cuda::spoilWorkspace(context);
    return;
  }
  const auto& workspace = cpu::stateOf(context).workspace;
  std::fill_n(reinterpret_cast<float*>(workspace.data()), workspace.bytes() / sizeof(float), test::kNan);
}

/// A plan's results; outputs and workspace were NaN before each pass.
struct ConvResults {
  Tensor y, gradX, gradWeight, gradBias;

  ConvResults(Tensor a, Tensor b, Tensor c, Tensor d) : y(a), gradX(b), gradWeight(c), gradBias(d) {}
  ConvResults(Conv2dPlan& plan, const ConvInputs& c, Context& context, bool withBias = true) {
    const Device device = context.device();
    const Tensor x = test::toTensor(c.x, plan.inputLayout(), device);
    const Tensor gradY = test::toTensor(c.gradY, plan.outputLayout(), device);
    const Tensor weight = test::toTensor(c.weight, device);
    y = test::nanTensor(c.shape.output(), plan.outputLayout(), device);
    gradX = test::nanTensor(c.shape.input(), plan.inputLayout(), device);
    gradWeight = test::nanTensor(c.shape.weight(), device);
    if (withBias) gradBias = test::nanTensor({c.shape.outChannels}, device);
    spoilWorkspace(context);
    plan.forward(x, weight, withBias ? test::toTensor(c.bias, device) : Tensor(), y);
    spoilWorkspace(context);
    plan.backwardData(gradY, weight, gradX);
    spoilWorkspace(context);
    plan.backwardWeights(x, gradY, gradWeight, gradBias);
    context.synchronize();
  }
};

void checkSameBits(const ConvResults& a, const ConvResults& b, bool biasToo = true) {
  CHECK(test::sameBits(a.y, b.y));
  CHECK(test::sameBits(a.gradX, b.gradX));
  CHECK(test::sameBits(a.gradWeight, b.gradWeight));
  if (biasToo) CHECK(test::sameBits(a.gradBias, b.gradBias));
}

/// A plan's allowed error, relative to a plain sum of products.
///
/// Winograd's algorithm F(4x4, 3x3) (Lavin and Gray, "Fast algorithms for convolutional neural networks",
/// 2015) transforms inputs (matrix B) and weights (G), adds up products over the channels at 6 places in each
/// direction, and computes outputs from these sums (A). With random inputs, the squared norms of the
/// matrices' rows are variances: an output at the tile's edge has sum_i A_i^2 B_i G_i = 24.5 in each
/// direction, where a plain sum of three times as many products has 3. Errors therefore grow by 24.5 / 9; 4
/// includes those of the transformations. For the gradient of the weights the factor is smaller, 26.2 / 16.
double amplification(const Conv2dPlan& plan, Conv2dChoice choice, Context& context) {
  const bool winograd =
      context.device().isCpu()
          ? plan.implementation().find("Winograd") != std::string::npos
          : choice != Conv2dChoice::Direct && choice != Conv2dChoice::ImplicitGemm;  // cuDNN may use it
  return winograd ? (context.device().isCpu() ? 4 : 12) : 1;
}

/// @param productError  relative rounding error of the products' factors.
double toleranceOf(std::int64_t terms, const Conv2dPlan& plan, Conv2dChoice choice, Context& context,
                   double productError = 0) {
  return test::productSumError(terms, productError) +
         (amplification(plan, choice, context) - 1) * test::productSumError(terms);
}

/// @param productError  as for `toleranceOf`.
ConvResults checkPlan(Conv2dPlan& plan, const Case& c, Context& context, Conv2dChoice choice,
                      double productError = 0) {
  CAPTURE(plan.implementation());
  ConvResults got(plan, c, context);
  const auto tolerance = [&](std::int64_t terms) {
    return toleranceOf(terms, plan, choice, context, productError);
  };
  CHECK(test::maxDifference(got.y, c.y) < tolerance(c.forwardTerms()));
  CHECK(test::maxDifference(got.gradX, c.gradX) < tolerance(c.dataTerms()));
  const bool winograd = context.device().isCpu() && choice == Conv2dChoice::Winograd;
  CHECK(test::maxDifference(got.gradWeight, c.gradWeight) <
        tolerance(winograd ? c.weightTermsInTiles() : c.weightTerms()));
  CHECK(test::maxDifference(got.gradBias, c.gradBias) < test::sumError(c.weightTerms(), test::kUniform));
  CHECK(test::paddingIsZero(got.y));
  CHECK(test::paddingIsZero(got.gradX));
  return got;
}

void checkAgainstReference(const Case& c, Context& context, Conv2dChoice choice, double productError = 0) {
  checkPlan(*planConv2d(c.shape, context, choice), c, context, choice, productError);
}

std::string describe(const Conv2dShape& s) {
  return fmt::format(
      "{} -> {} channels, input {}, kernel [{}], stride [{}], padding [{}], dilation [{}], {} groups",
      s.inChannels, s.outChannels, s.input().toString(), fmt::join(s.kernel, ","), fmt::join(s.stride, ","),
      fmt::join(s.padding, ","), fmt::join(s.dilation, ","), s.groups);
}

TEST_CASE_ON("convolutions agree with the reference over shapes, choices and threads", Where,
             MUSTER_TEST_MATH_MODES, test::OnCpuInBFloat16) {
  std::mt19937_64 random(test::freshSeed());
  std::vector<Conv2dShape> shapes{
      conv({3, 1, 12, 11}, 20, {.kernel = 5}),
      conv({2, 20, 8, 9}, 50, {.kernel = 5}),
      conv({5, 3, 7, 7}, 16, {.kernel = 3, .padding = 1}),
      conv({17, 4, 6, 5}, 3),
      conv({2, 17, 9, 9}, 33, {.kernel = 3, .stride = 2, .padding = 1}),
      conv({1, 2, 10, 12}, 5, {.kernel = {3, 2}, .stride = {1, 3}, .padding = {2, 0}}),
      conv({2, 16, 11, 11}, 16, {.kernel = 3, .padding = 2, .dilation = 2}),
      conv({1, 1, 1, 1}, 1),
      conv({5, 128, 8, 9}, 256),  // with AVX2 the rows of the output's gradient are copied, in two blocks
      conv({300, 1, 6, 10}, 2, {.kernel = 3}),
      conv({2, 3, 17, 18}, 6, {.kernel = 5, .stride = {2, 1}, .padding = {2, 3}, .dilation = 2}),
      conv({4, 32, 14, 9}, 48, {.kernel = 3, .padding = 1}),  // whole tiles of 4x4 outputs, and parts of them
      conv({3, 32, 7, 6}, 64, {.kernel = 3, .padding = 1, .groups = 2}),
      conv({2, 6, 7, 8}, 9, {.kernel = {2, 3}, .stride = {2, 1}, .groups = 3}),
      conv({2, 32, 8, 7}, 16, {.kernel = {7, 5}}),  // whole blocks, and more taps than fit a vector
      conv({2, 16, 5, 5}, 48, {.stride = 2}),
      conv({8, 4, 14, 13}, 8, {.stride = 2}),
      conv({3, 7, 9, 12}, 13, {.stride = {1, 3}}),
      conv({2, 20, 9, 9}, 20, {.kernel = 3, .stride = 2, .padding = 1, .groups = 20}),  // depthwise
      conv({1, 3, 6, 7}, 6, {.kernel = 3, .groups = 3}),  // two outputs a channel
  };
  // The convnet's second convolution, for which the reference takes seconds.
  if (!Where::device().isCpu()) shapes.push_back(conv({128, 20, 12, 12}, 50, {.kernel = 5}));
  for (const auto& shape : shapes) {
    const Case c(shape, random);
    INFO(describe(shape));
    for (const int threads : test::threadCounts<Where>({1, 3})) {
      Context context(Where::device(), Where::options(threads));
      ContextScope scope(context);
      for (auto choice : choicesFor(shape, context)) {
        INFO("threads ", threads, ", choice ", static_cast<int>(choice));
        checkAgainstReference(c, context, choice, Where::kProductError);
      }
    }
  }
}

TEST_CASE_ON("a convolution in bf16 rounds its factors to the nearest, and adds in float32", Where,
             test::OnCpuInBFloat16) {
  std::mt19937_64 random(test::freshSeed());
  for (const auto& shape :
       {conv({16, 1, 12, 13}, 20, {.kernel = 5}),  // a first layer
        conv({37, 20, 8, 9}, 50, {.kernel = 5}), conv({33, 7, 9, 5}, 3, {.kernel = 3, .padding = 1}),
        conv({4, 32, 14, 9}, 48, {.kernel = 3, .padding = 1}),
        conv({2, 17, 9, 9}, 33, {.kernel = 3, .stride = 2}),
        conv({3, 32, 7, 6}, 64, {.kernel = 3, .groups = 2}), conv({5, 64, 6, 6}, 128, {.stride = 2})})
    for (const int threads : {1, 2}) {
      INFO(describe(shape), ", threads ", threads);
      const ConvInputs fine(shape, random);
      ConvInputs rounded = fine;
      for (Array* factor : {&rounded.x, &rounded.weight, &rounded.gradY}) *factor = test::toBFloat16(*factor);
      const Case coarse(rounded);
      Context context(Device::cpu(), {.threads = threads, .mathMode = MathMode::BFloat16});
      ContextScope scope(context);
      for (const auto choice : choicesFor(shape, context)) {
        const auto plan = planConv2d(shape, context, choice), second = planConv2d(shape, context, choice);
        const ConvResults got = checkPlan(*plan, coarse, context, choice);
        // The gradient of the bias has no products, so there is no rounding to bf16.
        checkSameBits(got, ConvResults(*plan, fine, context), false);
        checkSameBits(got, ConvResults(*second, fine, context), false);
      }
    }
}

TEST_CASE(
    "gradients of small batches agree with the reference, with the same bits for any number of threads") {
  Draw draw;
  for (int trial = 0; trial < 12; ++trial) {
    const std::int64_t height = draw(1, 5), width = 3 + 2 * draw(0, 1);
    const Conv2dShape shape = conv({draw(1, 3), draw(1, 60), height + draw(0, 8), width + draw(0, 8)},
                                   draw(1, 60), {.kernel = {height, width}});
    Context own;
    if (!cpu::smallBatchGradientsSupport(shape, own)) return test::skip("our kernels need AVX2, not AVX-512");
    INFO(describe(shape));
    const Case c(shape, draw.random);
    for (const auto choice :
         {Conv2dChoice::RowMajor, Conv2dChoice::ChannelsLast, Conv2dChoice::ChannelBlocks}) {
      CAPTURE(static_cast<int>(choice));
      std::vector<ConvResults> all;
      for (const int threads : {1, 2, 3}) {
        Context context(Device::cpu(), {.threads = threads});
        ContextScope scope(context);
        auto plan = cpu::withSmallBatchGradients(shape, planConv2d(shape, context, choice), context);
        all.push_back(checkPlan(*plan, c, context, choice));
        if (choice == Conv2dChoice::ChannelsLast) CHECK(test::sameBits(all[0].gradX, all.back().gradX));
        if (choice == Conv2dChoice::ChannelBlocks && shape.inChannels > 3) continue;  // oneDNN's
        CHECK(test::sameBits(all[0].gradWeight, all.back().gradWeight));
        CHECK(test::sameBits(all[0].gradBias, all.back().gradBias));
      }
    }
  }
}

TEST_CASE(
    "convolutions with pixels in vectors agree with the reference, with the same bits for any number of "
    "threads") {
  Draw draw;
  for (int trial = 0; trial < 12; ++trial) {
    const std::int64_t height = draw(1, 5), width = draw(1, 7);
    Conv2dShape shape = conv({draw(1, 24), draw(1, 12), height + draw(0, 16), width + draw(0, 20)},
                             draw(1, 40), {.kernel = {height, width}});
    if (trial == 0)  // copies of ten, ten and four samples at a time, gradients of seven and three
      shape = conv({24, 9, 13, 14}, 11, {.kernel = 5});
    if (!cpu::pixelConv2dSupports(shape, Context())) return test::skip("our kernels need AVX-512");
    INFO(describe(shape));
    const Case c(shape, draw.random);
    const Array withoutBias = reference::conv2d(shape, c.x, c.weight, Array({shape.outChannels}));
    std::vector<ConvResults> all;
    for (const int threads : {1, 2, 3}) {
      CAPTURE(threads);
      Context context(Device::cpu(), {.threads = threads});
      auto plan = cpu::planPixelConv2d(shape, context);
      all.push_back(checkPlan(*plan, c, context, Conv2dChoice::Auto));
      checkSameBits(all[0], all.back());
      const ConvResults unbiased(*plan, c, context, false);
      CHECK(test::maxDifference(unbiased.y, withoutBias) <
            toleranceOf(c.forwardTerms(), *plan, Conv2dChoice::Auto, context));
      CHECK(test::sameBits(all[0].gradWeight, unbiased.gradWeight));
    }
  }
}

/// oneDNN's kernels read more than they should for some shapes, so what the memory around a tensor holds must
/// not matter: repeated trials move the tensors.
TEST_CASE("strided 1x1 convolutions of few channels do not read neighbouring memory") {
  std::mt19937_64 random(test::freshSeed());
  for (const std::array<std::int64_t, 2> stride : {std::array<std::int64_t, 2>{2, 2}, {1, 3}, {2, 1}})
    for (const std::int64_t channels : {1, 3, 7, 8, 15}) {
      const Case c(conv({3, channels, 12, 12}, 2 * channels, {.stride = stride}), random);
      INFO(describe(c.shape));
      for (const int threads : {1, 3}) {
        CAPTURE(threads);
        Context context(Device::cpu(), {.threads = threads});
        ContextScope scope(context);
        for (const auto choice : choicesFor(c.shape, context))
          for (std::size_t trial = 0; trial < 3; ++trial) {
            const std::vector<float> before(1000 + 448 * trial, 1e30f);
            checkAgainstReference(c, context, choice);
          }
      }
    }
}

TEST_CASE_ON("bf16 convolutions use AMX if the CPU has it", Where, test::OnCpuInBFloat16) {
  if (!cpu::hasAmx()) return test::skip("this CPU has no AMX, or the system does not permit its use");
  Context context(Device::cpu(), test::OnCpuInBFloat16::options());
  for (const std::int64_t size : {1, 3}) {
    const auto shape = conv({4, 64, 14, 14}, 64, {.kernel = size, .padding = size / 2});
    CHECK_CONTAINS(planConv2d(shape, context, Conv2dChoice::Auto)->implementation(), "amx");
  }
}

/// A GPU splits these sums by shape: several parts of many pixels, few pixels and one, the last part shorter;
/// one channel, and channels that do not fill a strip.
TEST_CASE_ON("a bias gradient of many values agrees with the reference", Where, MUSTER_TEST_MATH_MODES,
             test::OnCpuInBFloat16) {
  std::mt19937_64 random(test::freshSeed());
  for (const auto& shape : {conv({130, 1, 9, 9}, 3), conv({3, 4, 90, 53}, 1), conv({1203, 4, 2, 2}, 12),
                            conv({1030, 8, 1, 1}, 24)}) {
    const Case c(shape, random);
    INFO(describe(shape));
    Context context(Where::device(), Where::options());
    for (auto choice : choicesFor(shape, context)) {
      CAPTURE(static_cast<int>(choice));
      auto plan = planConv2d(shape, context, choice);
      const ConvResults got(*plan, c, context), again(*plan, c, context);
      CHECK(test::maxDifference(got.gradBias, c.gradBias) < test::sumError(c.weightTerms(), test::kUniform));
      checkSameBits(got, again);
    }
  }
}

TEST_CASE_ON("a plan with a fused ReLU applies it and keeps NaN, or refuses to fuse", Where,
             MUSTER_TEST_MATH_MODES, test::OnCpuInBFloat16) {
  std::mt19937_64 random(test::freshSeed());
  Context context(Where::device(), Where::options());
  Case c(conv({2, 8, 6, 6}, 16, {.kernel = 3}), random);
  std::vector<Conv2dChoice> choices{Conv2dChoice::RowMajor, Conv2dChoice::ChannelsLast};
  if (!Where::device().isCpu()) {
    for (const auto choice : {Conv2dChoice::PaddedChannels, Conv2dChoice::Direct}) choices.push_back(choice);
    if (context.mathMode() != MathMode::Float32) choices.push_back(Conv2dChoice::ImplicitGemm);
  }
  for (auto choice : choices) {
    CAPTURE(static_cast<int>(choice));
    auto plan = planConv2d(c.shape, context, choice);
    CHECK(!plan->fuse(Activation::Tanh));
    const bool fused = plan->fuse(Activation::ReLU);
    CHECK(fused == !Where::device().isCpu());
    const Array expected = fused ? reference::activation(Activation::ReLU, c.y) : c.y;
    CHECK(test::maxDifference(ConvResults(*plan, c, context).y, expected) <
          toleranceOf(c.forwardTerms(), *plan, choice, context, Where::kProductError));
    Case broken = c;
    broken.x.at(0) = test::kNan;
    CHECK(std::isnan(test::toArray(ConvResults(*plan, broken, context).y).at(0)));
  }
}

TEST_CASE("a convolution may have no bias and no bias gradient") {
  std::mt19937_64 random(test::freshSeed());
  Context context;
  ContextScope scope(context);
  const Case c(conv({2, 3, 6, 6}, 4, {.kernel = 3}), random);
  for (auto choice : choicesFor(c.shape, context)) {
    auto plan = planConv2d(c.shape, context, choice);
    const ConvResults got(*plan, c, context, false);
    CHECK(test::maxDifference(got.y, reference::conv2d(c.shape, c.x, c.weight, Array({4}))) <
          toleranceOf(c.forwardTerms(), *plan, choice, context));
    CHECK(test::maxDifference(got.gradWeight, c.gradWeight) <
          toleranceOf(c.weightTerms(), *plan, choice, context));
  }
}

TEST_CASE("a planned convolution gives the same bits at each run and from a second plan") {
  std::mt19937_64 random(test::freshSeed());
  const Conv2dShape shapes[] = {conv({17, 20, 8, 8}, 50, {.kernel = 5}),
                                conv({5, 32, 14, 14}, 32, {.kernel = 3, .padding = 1})};
  for (const auto& shape : shapes) {
    const ConvInputs c(shape, random);
    // Twice as large, so that it overwrites all scratch memory shared by the context's plans.
    Conv2dShape larger = shape;
    larger.batch *= 2;
    ConvInputs spoiled(larger, random);
    for (Array* array : {&spoiled.x, &spoiled.gradY}) std::ranges::fill(array->values, test::kNan);
    for (int threads : {1, 2}) {
      Context context(Device::cpu(), {.threads = threads});
      ContextScope scope(context);
      for (auto choice : choicesFor(c.shape, context)) {
        INFO("threads ", threads, ", choice ", static_cast<int>(choice));
        auto plan = planConv2d(c.shape, context, choice);
        const ConvResults first(*plan, c, context), second(*plan, c, context);
        auto spoiler = planConv2d(larger, context, choice);
        const ConvResults nothing(*spoiler, spoiled, context);
        auto other = planConv2d(c.shape, context, choice);
        const ConvResults third(*other, c, context), fourth(*plan, c, context);
        for (const ConvResults* again : {&second, &third, &fourth}) checkSameBits(first, *again);
      }
    }
  }
}

TEST_CASE("a plan that includes max pooling gives the bits of separate convolution, ReLU and pooling") {
  Draw draw;
  Conv2dShape example{.height = 6, .width = 6, .kernel = {3, 3}};
  if (!cpu::directConv2dSupports(example, Context()))
    return test::skip("this processor has no plan that pools");
  for (int i = 0; i < 24; ++i) {
    const std::int64_t kernel = 1 + 2 * draw(0, 3);
    const Conv2dShape shape = conv({draw(1, 40), draw(1, 5), draw(kernel, 12), draw(kernel, 12)}, draw(1, 9),
                                   {.kernel = kernel, .padding = {draw(0, kernel / 2), draw(0, kernel / 2)}});
    const Shape out = shape.output();
    const std::int64_t rows = draw(1, std::min<std::int64_t>(out[2], 3));
    const auto pool = test::pool(out, {.kernel = {rows, draw(1, std::min<std::int64_t>(out[3], 3))},
                                       .stride = {rows + draw(0, 1), draw(1, 3)}});
    const auto activation = draw(0, 1) ? Activation::ReLU : Activation::Identity;
    ConvInputs c(shape, draw.random);
    Array gradPooled = test::randomArray(pool.output(), draw.random);
    if (draw(0, 1))  // many equal values, of which a window takes the first
      for (Array* array : {&c.x, &c.weight, &c.bias, &gradPooled})
        for (double& value : array->values) value = std::round(value);
    Context context(Device::cpu(), {.threads = static_cast<int>(draw(1, 2))});
    ContextScope scope(context);
    CAPTURE(describe(shape));
    CAPTURE(fmt::format("pooling [{}], stride [{}], {} threads", fmt::join(pool.kernel, ","),
                        fmt::join(pool.stride, ","), context.threads()));

    constexpr auto kBlocks = Layout::SampleBlocks;
    const Tensor x = test::toTensor(c.x, kBlocks), weight = test::toTensor(c.weight),
                 bias = test::toTensor(c.bias);
    const auto pass = [&](bool together) {
      ConvResults got{test::nanTensor(pool.output(), kBlocks), test::nanTensor(shape.input(), kBlocks),
                      test::nanTensor(shape.weight()), test::nanTensor({shape.outChannels})};
      auto plan = planConv2d(shape, context, Conv2dChoice::Direct);
      Tensor gradY = test::toTensor(gradPooled, kBlocks);
      if (together) {
        if (activation == Activation::ReLU) CHECK(plan->fuse(activation));
        CHECK(plan->fusePool(pool));
        plan->forward(x, weight, bias, got.y);
        if (activation == Activation::ReLU) activationBackward(activation, {}, got.y, gradY, gradY, context);
      } else {
        Tensor y = test::nanTensor(out, kBlocks), gradPlanes = test::nanTensor(out, kBlocks);
        plan->forward(x, weight, bias, y);
        if (activation == Activation::ReLU) activationForward(activation, y, y, context);
        auto pooling = planPool2d(pool, kBlocks, context);
        pooling->forward(y, got.y);
        pooling->backward(gradY, gradPlanes);
        if (activation == Activation::ReLU)
          activationBackward(activation, {}, y, gradPlanes, gradPlanes, context);
        gradY = std::move(gradPlanes);
      }
      plan->backwardData(gradY, weight, got.gradX);
      plan->backwardWeights(x, gradY, got.gradWeight, got.gradBias);
      return got;
    };
    checkSameBits(pass(false), pass(true));
  }
}

TEST_CASE("a plan refuses to include poolings that it cannot compute") {
  Context context;
  const Conv2dShape shape = conv({16, 1, 8, 8}, 3, {.kernel = 3});
  const Pool2dShape good = test::pool(shape.output()),
                    bad[] = {test::pool(shape.output(), {.kind = PoolKind::Average}),
                             test::pool(shape.output(), {.kernel = {3, 2}}),
                             test::pool(shape.output(), {.padding = {1, 0}}), test::pool({16, 3, 7, 6})};
  for (const auto choice : choicesFor(shape, context)) {
    CAPTURE(static_cast<int>(choice));
    auto plan = planConv2d(shape, context, choice);
    for (const auto& pool : bad) CHECK(!plan->fusePool(pool));
    if (choice == Conv2dChoice::Direct) CHECK(plan->fusePool(good));
    if (choice == Conv2dChoice::ChannelsLast) CHECK(!plan->fusePool(good));
  }
}

TEST_CASE("the chosen implementation fixes the layouts") {
  Context context;
  const auto gray = conv({16, 1, 28, 28}, 20, {.kernel = 5});
  const auto deep = conv({16, 20, 12, 12}, 50, {.kernel = 5});
  const auto layouts = [&](const Conv2dShape& shape, Conv2dChoice choice) {
    auto plan = planConv2d(shape, context, choice);
    return std::pair(plan->inputLayout(), plan->outputLayout());
  };
  for (const auto& [choice, layout] : {std::pair(Conv2dChoice::RowMajor, Layout::RowMajor),
                                       {Conv2dChoice::ChannelsLast, Layout::ChannelsLast},
                                       {Conv2dChoice::ChannelBlocks, Layout::ChannelBlocks}})
    CHECK(layouts(deep, choice) == std::pair(layout, layout));
  CHECK(layouts(gray, Conv2dChoice::ChannelBlocks) == std::pair(Layout::RowMajor, Layout::ChannelBlocks));
  CHECK(layouts(gray, Conv2dChoice::Auto) == layouts(gray, Conv2dChoice::Auto));
}

/// What `Auto` chooses by our instruction set: the kernel's name as of `kernelOf`.
struct Choice {
  const char* why;
  Conv2dShape shape;
  const char *withAvx2, *withAvx512;
  Layout offered = Layout::RowMajor;
  std::optional<Layout> layout = {};  // of input and output, where it is said
};

/// Which of our kernels a plan has; "": oneDNN computes all passes.
std::string kernelOf(const Conv2dPlan& plan) {
  const std::string text = plan.implementation();
  for (const char* whole : {"direct", "pixels", "Winograd"})
    if (text.starts_with(whole)) return whole;
  for (const char* part : {"gradients AVX2", "gradient sgemm"})
    if (text.ends_with(part)) return part;
  return "";
}

Conv2dShape square(std::int64_t batch, std::int64_t channels, std::int64_t size, const Conv2dShape& options) {
  return conv({batch, channels, size, size}, channels, options);
}

/// @param blocks  the layout where blocks of channels are wanted if oneDNN has fast kernels for them.
std::vector<Choice> choicesOfAuto(Layout blocks) {
  const Conv2dShape five{.kernel = 5}, three{.kernel = 3}, padded{.kernel = 3, .padding = 1},
      strided{.kernel = 3, .stride = 2, .padding = 1};
  const auto groups = [&](std::int64_t number) {
    Conv2dShape options = padded;
    options.groups = number;
    return square(8, 64, 28, options);
  };
  std::vector<Choice> choices{
      {"channels waste lanes", conv({128, 1, 12, 12}, 20, five), "direct", "direct"},
      {"of a narrow kernel, too", conv({128, 1, 12, 12}, 20, three), "direct", "direct"},
      {"whole blocks, which the next layer needs", conv({128, 1, 12, 12}, 32, three), "", ""},
      {"narrow kernels reuse little", conv({128, 20, 12, 12}, 50, three), "", ""},
      {"whole blocks", conv({128, 32, 12, 12}, 64, five), "", ""},

      {"a matrix product", conv({8, 32, 14, 14}, 64), "gradient sgemm", ""},
      {"strided", conv({8, 32, 14, 14}, 64, {.stride = 2}), "", ""},
      {"padded", conv({8, 32, 14, 14}, 64, {.padding = {1, 0}}), "", ""},
      {"in groups", conv({8, 32, 14, 14}, 64, {.groups = 2}), "", ""},

      {"many tiles", square(8, 64, 28, padded), "Winograd", "Winograd"},
      {"a tile an image", square(64, 512, 4, padded), "Winograd", "Winograd"},
      {"eight tiles", square(8, 512, 4, padded), "Winograd", "Winograd"},
      {"four tiles", square(4, 512, 4, padded), "", ""},
      {"32 tiles, three quarters full", square(8, 128, 7, padded), "Winograd", "Winograd"},
      {"four tiles an image, mostly empty", square(64, 64, 5, padded), "", ""},
      {"few channels", square(64, 16, 28, padded), "", ""},
      {"a block half empty", square(64, 40, 28, padded), "", ""},

      // Convolutions after one in blocks of channels stay in blocks, if oneDNN has fast kernels for blocks of
      // sixteen: those for AVX2 have blocks of eight.
      {"blocks stay", square(8, 64, 28, strided), "", "", Layout::ChannelBlocks, blocks},
      {"rows do not", square(8, 64, 28, strided), "", "", Layout::RowMajor, Layout::ChannelsLast},
      {"groups of whole blocks", groups(4), "", "", Layout::RowMajor, blocks},
      {"depthwise", groups(64), "", "", Layout::RowMajor, blocks},
      {"groups of half a block", groups(8), "", "", Layout::RowMajor, Layout::ChannelsLast},
  };
  for (const auto& [why, batch, withAvx2, withAvx512] :
       {std::tuple{"one sample", 1, "gradients AVX2", "pixels"},
        {"four samples", 4, "gradients AVX2", "pixels"},
        {"whole vectors of eight", 8, "direct", "pixels"},
        {"whole vectors of sixteen", 16, "direct", "direct"},
        {"half a vector of sixteen", 24, "direct", "pixels"},
        {"the convnet's batch", 128, "direct", "direct"}})
    for (const auto& shape : {conv({batch, 1, 28, 28}, 20, five), conv({batch, 20, 12, 12}, 50, five)})
      choices.push_back({why, shape, withAvx2, withAvx512});
  return choices;
}

TEST_CASE("Auto chooses by shape, offered layout and instruction set") {
  Context context;
  const auto set = cpu::instructionSet();
  const auto inBlocks = square(8, 64, 28, {.kernel = 3, .stride = 2, .padding = 1});
  const bool fast =
      planConv2d(inBlocks, context, Conv2dChoice::ChannelBlocks)->implementation().find("avx512") !=
      std::string::npos;
  for (const Choice& choice : choicesOfAuto(fast ? Layout::ChannelBlocks : Layout::ChannelsLast)) {
    INFO(describe(choice.shape), ": ", std::string(choice.why));
    const auto plan = planConv2d(choice.shape, context, Conv2dChoice::Auto, choice.offered);
    CAPTURE(plan->implementation());
    const std::string kernel = set == cpu::InstructionSet::Avx512 ? choice.withAvx512
                               : set == cpu::InstructionSet::Avx2 ? choice.withAvx2
                                                                  : "";
    CHECK(kernelOf(*plan) == kernel);
    CHECK((plan->outputLayout() == Layout::SampleBlocks) == (kernel == "direct"));
    if (set == cpu::InstructionSet::Baseline || !choice.layout) continue;
    CHECK(plan->inputLayout() == *choice.layout);
    CHECK(plan->outputLayout() == *choice.layout);
  }
}

TEST_CASE("choices that cannot compute a shape are refused, and others keep to themselves") {
  Context context;
  const auto strided = square(8, 64, 28, {.kernel = 3, .stride = 2, .padding = 1});
  for (const auto choice : {Conv2dChoice::Winograd, Conv2dChoice::PaddedChannels, Conv2dChoice::ImplicitGemm})
    CHECK_THROWS_AS(planConv2d(strided, context, choice), InvalidArgument);
  CHECK(kernelOf(*planConv2d(conv({8, 32, 14, 14}, 64), context, Conv2dChoice::ChannelsLast)) == "");
}

TEST_CASE("a GPU's own kernels are chosen for first layers whose images fit a block's memory") {
  if constexpr (kCudaBuilt) {
    using cuda::directConv2dSupports;
    const auto digits = conv({128, 1, 28, 28}, 20, {.kernel = 5});
    const auto photos = conv({64, 3, 32, 32}, 64, {.kernel = 3, .padding = 1});
    CHECK(directConv2dSupports(digits));
    CHECK(directConv2dSupports(photos));
    const auto refused = [&](const char* why, auto change) {
      CAPTURE(why);
      Conv2dShape shape = photos;
      change(shape);
      shape.validate();
      CHECK_FALSE(directConv2dSupports(shape));
    };
    refused("groups", [](Conv2dShape& s) { s.inChannels = s.outChannels = s.groups = 2; });
    refused("too many taps", [](Conv2dShape& s) { s.inChannels = 11; });
    refused("too large an image", [](Conv2dShape& s) { s.height = s.width = 224; });
    refused("too many weights", [](Conv2dShape& s) { s.outChannels = 512; });
    refused("more elements than 32 bits count", [](Conv2dShape& s) { s.batch = 1 << 15; });
  } else {
    test::skip("this build has no CUDA");
  }
}

TEST_CASE(
    "Winograd's algorithm agrees with the reference over random sizes, with the same bits on any threads") {
  Draw one;
  std::vector<Conv2dShape> shapes;
  for (int i = 0; i < 12; ++i) {
    const std::int64_t padding = one(0, 3);
    const std::int64_t least = std::max<std::int64_t>(1, 3 - 2 * padding);
    shapes.push_back(conv({one(1, 4), 16 * one(1, 4), one(least, 15), one(least, 15)}, 16 * one(1, 4),
                          {.kernel = 3, .padding = padding}));
  }
  const auto add = [&](const Shape& x, std::int64_t outputs, Size2d padding = 1) {
    shapes.push_back(conv(x, outputs, {.kernel = 3, .padding = padding}));
  };
  add({5, 16, 29, 30}, 32, {1, 0});  // tiles in several parts, the last one smaller
  add({4, 608, 13, 16}, 48);         // weights that do not stay in the cache, and tiles in several parts
  add({4, 48, 13, 16}, 608);         // and in the gradient of the input
  add({2, 144, 6, 6}, 80);           // weights that are transformed for some channels at a time
  add({9, 80, 13, 13}, 48);          // and tiles in several parts
  add({8, 256, 4, 4}, 256);          // all tiles at once, weights that do not stay in the cache
  add({2, 464, 8, 8}, 64);           // and more threads than the two or four groups of channels
  if (Context context; !cpu::winogradConv2dSupports(shapes[0], context))
    return test::skip("Winograd's algorithm needs AVX2");
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const auto& shape = shapes[i];
    const Case c(shape, one.random);
    INFO(describe(shape));
    std::optional<ConvResults> first;
    const auto threads = i < 12 ? std::vector{1, static_cast<int>(one(2, 3))} : std::vector{1, 2, 5};
    for (const int count : threads) {
      Context context(Device::cpu(), {.threads = count});
      ContextScope scope(context);
      const auto got =
          checkPlan(*planConv2d(shape, context, Conv2dChoice::Winograd), c, context, Conv2dChoice::Winograd);
      if (!first) first = got;
      checkSameBits(got, *first);
    }
    Context context;
    const ConvResults mixed(*cpu::planWinogradConv2d(shape, context, {true, false, false}), c, context,
                            false);
    const auto plan = planConv2d(shape, context, Conv2dChoice::Winograd);
    const auto tolerance = [&](std::int64_t terms) {
      return toleranceOf(terms, *plan, Conv2dChoice::Winograd, context);
    };
    CHECK(test::maxDifference(mixed.gradX, c.gradX) < tolerance(c.dataTerms()));
    CHECK(test::maxDifference(mixed.gradWeight, c.gradWeight) < tolerance(c.weightTerms()));
  }
}

/// window_checks_test has the other windows and sizes.
TEST_CASE("convolutions of invalid shapes are refused by name") {
  Context context;
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  CHECK_REFUSED(planConv2d({.height = 6, .width = 6, .stride = {kMost, 1}, .padding = {1, 0}}, context),
                "conv2d: an input of 6 pixels, padding 1 on each side and stride 2147483647 are too large, "
                "together at most 2147483647");
  CHECK(planConv2d({.height = 6, .width = 6, .stride = {kMost - 8, 1}, .padding = {1, 0}}, context) !=
        nullptr);
  CHECK_REFUSED(
      planConv2d({.height = 4, .width = 9, .kernel = {3, 3}, .padding = {0, 0}, .dilation = {2, 2}}, context),
      "conv2d: a kernel [3, 3] with dilation [2, 2] does not fit an input [4, 9] with padding [0, 0]");
  // The direct kernels only support one group and stride 1.
  for (const Conv2dShape& shape : {Conv2dShape{.inChannels = 2, .outChannels = 2, .groups = 2},
                                   Conv2dShape{.height = 5, .width = 5, .stride = {2, 2}}})
    CHECK_THROWS_AS(planConv2d(shape, context, Conv2dChoice::Direct), InvalidArgument);
}

TEST_CASE("tensors that do not fit the plan are refused by name") {
  Context context;
  ContextScope scope(context);
  const auto shape = conv({2, 3, 5, 5}, 4, {.kernel = 3});
  auto plan = planConv2d(shape, context, Conv2dChoice::RowMajor);
  Tensor x = Tensor::zeros(shape.input()), weight = Tensor::zeros(shape.weight()),
         y = Tensor::zeros(shape.output());
  Tensor wrong = Tensor::zeros({2, 3, 5, 4});
  CHECK_REFUSED(plan->forward(wrong, weight, {}, y),
                "conv2d: x is float32 [2, 3, 5, 4] on cpu, expected float32 [2, 3, 5, 5] on cpu");
  CHECK_THROWS_AS(plan->forward(x, Tensor(), {}, y), InvalidArgument);
  CHECK_THROWS_AS(plan->forward(x, weight, wrong, y), InvalidArgument);
  CHECK_THROWS_AS(plan->backwardData(y, weight, wrong), InvalidArgument);
  CHECK_THROWS_AS(plan->backwardWeights(x, y, wrong, wrong), InvalidArgument);
  Tensor otherLayout = Tensor::zeros(shape.input(), DType::Float32, Device::cpu(), Layout::ChannelsLast);
  CHECK_THROWS_AS(plan->forward(otherLayout, weight, {}, y), InvalidArgument);
}

}  // namespace
}  // namespace muster
