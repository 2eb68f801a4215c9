// The convolutions of the MNIST network at batch 128 and of ResNet-18 (28x28 images) at batch 64 and 8, by
// each implementation, pass by pass on one thread. Those of the MNIST network also at several batch sizes, as
// the network runs them.
#include "muster/core/ops/conv2d.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "muster/core/backend/cpu/conv/winograd_conv2d.h"
#include "muster/core/device/math_mode.h"
#include "tests/bench/tensors.h"

using namespace muster;
using bench::differences;
using bench::inLayout;
using bench::randomTensor;

namespace {

const Conv2dShape kFirst{
    .batch = 128, .inChannels = 1, .height = 28, .width = 28, .outChannels = 20, .kernel = {5, 5}};
const Conv2dShape kSecond{
    .batch = 128, .inChannels = 20, .height = 12, .width = 12, .outChannels = 50, .kernel = {5, 5}};

enum class Pass { Forward, BackwardData, BackwardWeights };
constexpr std::pair<const char*, Pass> kPasses[] = {{"/forward/", Pass::Forward},
                                                    {"/backward data/", Pass::BackwardData},
                                                    {"/backward weights/", Pass::BackwardWeights}};

/// What the plan includes.
enum class Fused { Nothing, Pool, ReluAndPool };

Pool2dShape poolAfter(const Conv2dShape& shape) {
  const Shape out = shape.output();
  return {.batch = out[0], .channels = out[1], .height = out[2], .width = out[3]};
}

struct Tensors {
  Tensors(const Conv2dShape& shape, const Conv2dPlan& plan, const Shape& output, Context& context)
      : x(inLayout(randomTensor(shape.input(), "x"), plan.inputLayout(), context)),
        weight(randomTensor(shape.weight(), "weight")),
        bias(randomTensor({shape.outChannels}, "bias")),
        gradY(inLayout(randomTensor(output, "gradY"), plan.outputLayout(), context)),
        y(Tensor::zeros(output, DType::Float32, Device::cpu(), plan.outputLayout())),
        gradX(Tensor::zeros(shape.input(), DType::Float32, Device::cpu(), plan.inputLayout())),
        gradWeight(Tensor::zeros(shape.weight())),
        gradBias(Tensor::zeros({shape.outChannels})) {}
  Tensor x, weight, bias, gradY, y, gradX, gradWeight, gradBias;
};

void run(Conv2dPlan& plan, Pass pass, Tensors& t) {
  if (pass == Pass::Forward) plan.forward(t.x, t.weight, t.bias, t.y);
  if (pass == Pass::BackwardData) plan.backwardData(t.gradY, t.weight, t.gradX);
  if (pass == Pass::BackwardWeights) plan.backwardWeights(t.x, t.gradY, t.gradWeight, t.gradBias);
}

/// The result of a pass, row-major.
Tensor resultOf(Pass pass, const Tensors& t, Context& context) {
  if (pass == Pass::BackwardWeights) return t.gradWeight;
  return inLayout(pass == Pass::Forward ? t.y : t.gradX, Layout::RowMajor, context);
}

/// The result of a pass by the row-major implementation in the same math mode, with a ReLU and a pooling
/// of their own. `gradY` is the gradient of what the ReLU reads, so no pass includes the ReLU's gradient.
Tensor expected(const Conv2dShape& shape, Fused fused, Pass pass, Context& context) {
  auto plan = planConv2d(shape, context, Conv2dChoice::RowMajor);
  Tensors t(shape, *plan, shape.output(), context);
  plan->forward(t.x, t.weight, t.bias, t.y);
  if (fused == Fused::ReluAndPool) activationForward(Activation::ReLU, t.y, t.y, context);
  if (fused != Fused::Nothing) {
    const Pool2dShape shapeOfPool = poolAfter(shape);
    auto pool = planPool2d(shapeOfPool, Layout::RowMajor, context);
    Tensor y = Tensor::zeros(shapeOfPool.output());
    pool->forward(t.y, y);
    if (pass == Pass::Forward) return y;
    pool->backward(randomTensor(y.shape(), "gradY"), t.gradY);
  }
  if (pass != Pass::Forward) run(*plan, pass, t);
  return resultOf(pass, t, context);
}

/// A fast wrong result is not reported. Of gradients, a twentieth may differ: if two values of a window are
/// nearly equal, rounding decides which one gets the gradient.
bool agrees(const Conv2dShape& shape, Fused fused, Pass pass, const Tensors& t, Context& context) {
  const Tensor reference = expected(shape, fused, pass, context), found = resultOf(pass, t, context);
  if (pass == Pass::Forward) return differences(reference, found, 1e-3f) == 0;
  return differences(reference, found, 1e-2f) <= (fused == Fused::Nothing ? 0 : reference.elements() / 20);
}

double operationsOf(const Conv2dShape& shape) {
  return 2.0 * static_cast<double>(shape.output().elements()) *
         static_cast<double>(shape.weight().elements() / shape.outChannels);
}

void count(benchmark::State& state, const Conv2dShape& shape, const Conv2dPlan& plan) {
  state.counters["FLOP/s"] =
      benchmark::Counter(operationsOf(shape), benchmark::Counter::kIsIterationInvariantRate);
  state.SetItemsProcessed(state.iterations() * shape.batch);
  state.SetLabel(plan.implementation());
}

std::string nameOf(const Conv2dShape& s) {
  return fmt::format("{}x{}x{} to {}, {}x{}", s.inChannels, s.height, s.width, s.outChannels, s.kernel[0],
                     s.kernel[1]);
}

/// Registers a benchmark; `arguments` are a function and its arguments after the state.
template <typename... Arguments>
void add(const std::string& name, Arguments... arguments) {
  benchmark::RegisterBenchmark(name.c_str(), arguments...);
}

/// ResNet-18's distinct convolutions of 28x28 images.
std::vector<std::pair<std::string, Conv2dShape>> resnet18(std::int64_t batch) {
  std::vector<std::pair<std::string, Conv2dShape>> shapes;
  const auto append = [&](std::int64_t in, std::int64_t size, std::int64_t out, std::int64_t kernel,
                          std::int64_t stride) {
    Conv2dShape shape{.kernel = kernel, .stride = stride, .padding = kernel / 2};
    shape.batch = batch;
    shape.inChannels = in;
    shape.height = shape.width = size;
    shape.outChannels = out;
    shapes.emplace_back(
        fmt::format("resnet18 batch {}, {}{}", batch, nameOf(shape), stride == 2 ? " stride 2" : ""), shape);
  };
  append(1, 28, 64, 3, 1);
  for (std::int64_t channels = 64, size = 28; channels <= 512; channels *= 2, size = (size + 1) / 2) {
    append(channels, size, channels, 3, 1);
    if (channels == 512) break;
    append(channels, size, 2 * channels, 3, 2);
    append(channels, size, 2 * channels, 1, 2);
  }
  return shapes;
}

/// One pass, its weights' reorders included.
void measure(benchmark::State& state, const Conv2dShape& shape, Conv2dPlan& plan, Pass pass, Fused fused,
             Context& context, bool bias = true) {
  Tensors t(shape, plan, fused == Fused::Nothing ? shape.output() : poolAfter(shape).output(), context);
  run(plan, Pass::Forward, t);  // keeps which value of a window was the largest
  run(plan, pass, t);
  if (!agrees(shape, fused, pass, t, context)) return state.SkipWithError("the result is wrong");
  if (!bias) t.bias = t.gradBias = Tensor();
  for (auto step : state) {
    run(plan, pass, t);
    benchmark::ClobberMemory();
  }
  count(state, shape, plan);
}

void onePass(benchmark::State& state, const Conv2dShape& shape, Conv2dChoice choice, Pass pass,
             MathMode mathMode) {
  if (const auto why = whyNoMathMode(Device::cpu(), mathMode); !why.empty())
    return state.SkipWithError(why.c_str());
  Context context(Device::cpu(), {.mathMode = mathMode});
  const ContextScope scope(context);
  if (choice == Conv2dChoice::Winograd && !cpu::winogradConv2dSupports(shape, context))
    return state.SkipWithError("there are no Winograd kernels for this processor");
  // In the network the previous layer's output is in blocks of channels.
  auto plan = planConv2d(shape, context, choice, Layout::ChannelBlocks);
  measure(state, shape, *plan, pass, Fused::Nothing, context);
}

/// A pass of the MNIST network, whose second convolution reads the layout of the first one's output.
void convnetPass(benchmark::State& state, const Conv2dShape& shape, Pass pass, Fused fused) {
  Context context;
  const ContextScope scope(context);
  Conv2dShape before = kFirst;
  before.batch = shape.batch;
  const Layout offered =
      shape.inChannels == 1 ? Layout::RowMajor : planConv2d(before, context)->outputLayout();
  auto plan = planConv2d(shape, context, Conv2dChoice::Auto, offered);
  if ((fused == Fused::ReluAndPool && !plan->fuse(Activation::ReLU)) ||
      (fused != Fused::Nothing && !plan->fusePool(poolAfter(shape))))
    return state.SkipWithError("the plan cannot include it");
  measure(state, shape, *plan, pass, fused, context);
}

void registerConvnet() {
  for (Conv2dShape shape : {kFirst, kSecond})
    for (const std::int64_t batch : {1, 4, 8, 16, 24, 128})
      for (const auto& [passName, pass] : kPasses) {
        if (shape.inChannels == 1 && pass == Pass::BackwardData) continue;
        shape.batch = batch;
        const auto name = fmt::format("convnet batch {}, {}{}auto", batch, nameOf(shape), passName);
        add(name, convnetPass, shape, pass, Fused::Nothing);
        if (batch < 128) continue;
        add(name + " with pooling", convnetPass, shape, pass, Fused::Pool);
        add(name + " with ReLU and pooling", convnetPass, shape, pass, Fused::ReluAndPool);
      }
}

/// The one-dimensional convolution of 128 steps of 256 features, as its layer runs it.
void registerConv1d() {
  const Conv2dShape shape{
      .batch = 16, .inChannels = 256, .width = 128, .outChannels = 256, .kernel = {1, 3}, .padding = {0, 1}};
  for (const auto& [passName, pass] : kPasses)
    add("conv1d batch 16, " + nameOf(shape) + passName + "channels-last", onePass, shape,
        Conv2dChoice::ChannelsLast, pass, MathMode::Float32);
}

/// A pass of a convolution without bias, as before batch normalisation, between channels-last activations.
void passWithoutBias(benchmark::State& state, const Conv2dShape& shape, Conv2dChoice choice, Pass pass) {
  Context context;
  const ContextScope scope(context);
  auto plan = planConv2d(shape, context, choice, Layout::ChannelsLast);
  measure(state, shape, *plan, pass, Fused::Nothing, context, false);
}

/// The 1x1 convolutions of MobileNet-like blocks, in oneDNN's channels-last and as `Auto` chooses.
void registerPointwise() {
  for (const std::int64_t batch : {1, 8, 64})
    for (const auto& [in, size, out] :
         {std::tuple{32, 28, 64}, {64, 14, 128}, {128, 14, 128}, {128, 7, 256}, {256, 7, 64}, {16, 28, 24}})
      for (const auto& [passName, pass] : kPasses)
        for (const auto& [name, choice] : {std::pair{"channels-last", Conv2dChoice::ChannelsLast},
                                           std::pair{"auto", Conv2dChoice::Auto}}) {
          const Conv2dShape shape{
              .batch = batch, .inChannels = in, .height = size, .width = size, .outChannels = out};
          add(fmt::format("pointwise batch {}, {}{}{}", batch, nameOf(shape), passName, name),
              passWithoutBias, shape, choice, pass);
        }
}

void registerPasses(const std::string& shapeName, const Conv2dShape& shape, const std::string& name,
                    Conv2dChoice choice, MathMode mathMode) {
  for (const auto& [passName, pass] : kPasses)
    if (shape.inChannels > 1 || pass != Pass::BackwardData)  // a network's input has no gradient
      add(shapeName + passName + name, onePass, shape, choice, pass, mathMode);
}

void registerResnet18(const std::string& name, Conv2dChoice choice, MathMode mathMode = MathMode::Float32) {
  for (const std::int64_t batch : {64, 8})
    for (const auto& [shapeName, shape] : resnet18(batch))
      if (choice != Conv2dChoice::Winograd || (shape.kernel[0] == 3 && shape.stride[0] == 1))
        registerPasses(shapeName, shape, name, choice, mathMode);
}

/// Convolutions that our kernels compute where oneDNN's vectors waste lanes, and oneDNN's beside them: the
/// second one of the MNIST network at small batches, and a first layer of colour images.
void registerOneDnns() {
  const std::pair<const char*, Conv2dChoice> layouts[] = {{"channels-last", Conv2dChoice::ChannelsLast},
                                                          {"channel-blocks", Conv2dChoice::ChannelBlocks}};
  Conv2dShape second = kSecond;
  Conv2dShape colour{.inChannels = 3, .height = 32, .width = 32, .outChannels = 20, .kernel = {5, 5}};
  for (const std::int64_t batch : {1, 8})
    for (const auto& [name, choice] : layouts) {
      second.batch = batch;
      registerPasses(fmt::format("convnet batch {}, {}", batch, nameOf(second)), second, name, choice,
                     MathMode::Float32);
    }
  for (const std::int64_t batch : {8, 128}) {
    colour.batch = batch;
    const auto shapeName = fmt::format("colour batch {}, {}", batch, nameOf(colour));
    registerPasses(shapeName, colour, "auto", Conv2dChoice::Auto, MathMode::Float32);
    for (const auto& [name, choice] : layouts)
      registerPasses(shapeName, colour, name, choice, MathMode::Float32);
  }
}

const bool kRegistered = [] {
  const std::tuple<const char*, Conv2dChoice, MathMode> arms[] = {
      {"row-major", Conv2dChoice::RowMajor, MathMode::Float32},
      {"channels-last", Conv2dChoice::ChannelsLast, MathMode::Float32},
      {"channel-blocks", Conv2dChoice::ChannelBlocks, MathMode::Float32},
      {"auto", Conv2dChoice::Auto, MathMode::Float32},
      {"bf16, auto", Conv2dChoice::Auto, MathMode::BFloat16},
      {"bf16, channel-blocks", Conv2dChoice::ChannelBlocks, MathMode::BFloat16}};
  for (const auto& [name, choice, mathMode] : arms) {
    for (const Conv2dShape& shape : {kFirst, kSecond})
      registerPasses("conv2d " + nameOf(shape), shape, name, choice, mathMode);
    if (choice != Conv2dChoice::RowMajor) registerResnet18(name, choice, mathMode);
  }
  registerResnet18("winograd", Conv2dChoice::Winograd);
  registerConvnet();
  registerConv1d();
  registerPointwise();
  registerOneDnns();
  return true;
}();

}  // namespace
