// The convolutions of the MNIST network at batch 128 and of ResNet-18 (28x28 images) at batch 64 and 8, by
// each implementation, on one thread; for ResNet-18, pass by pass.
#include "muster/core/ops/conv2d.h"

#include <benchmark/benchmark.h>

#include <cmath>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "muster/core/backend/cpu/winograd_conv2d.h"
#include "muster/core/base/random.h"
#include "muster/core/device/math_mode.h"
#include "muster/core/ops/reorder.h"

using namespace muster;

namespace {

const Conv2dShape kFirst{
    .batch = 128, .inChannels = 1, .height = 28, .width = 28, .outChannels = 20, .kernel = {5, 5}};
const Conv2dShape kSecond{
    .batch = 128, .inChannels = 20, .height = 12, .width = 12, .outChannels = 50, .kernel = {5, 5}};

Tensor random(const Shape& shape, Layout layout, std::string_view name) {
  Tensor tensor = Tensor::zeros(shape, DType::Float32, Device::cpu(), layout);
  const RandomStream stream(1, name);
  for (std::uint64_t i = 0; auto& value : tensor.span<float>())
    value = static_cast<float>(stream.uniform(i++) - 0.5);
  return tensor;
}

struct Tensors {
  Tensors(const Conv2dShape& shape, const Conv2dPlan& plan)
      : x(random(shape.input(), plan.inputLayout(), "x")),
        weight(random(shape.weight(), Layout::RowMajor, "weight")),
        bias(random({shape.outChannels}, Layout::RowMajor, "bias")),
        gradY(random(shape.output(), plan.outputLayout(), "gradY")),
        y(Tensor::zeros(shape.output(), DType::Float32, Device::cpu(), plan.outputLayout())),
        gradX(Tensor::zeros(shape.input(), DType::Float32, Device::cpu(), plan.inputLayout())),
        gradWeight(Tensor::zeros(shape.weight())),
        gradBias(Tensor::zeros({shape.outChannels})) {}
  Tensor x, weight, bias, gradY, y, gradX, gradWeight, gradBias;
};

/// Compares with the row-major implementation in the same math mode: a fast wrong result is not reported.
bool agrees(const Conv2dShape& shape, Context& context, const Tensors& t) {
  auto reference = planConv2d(shape, context, Conv2dChoice::RowMajor);
  Tensors r(shape, *reference);
  reorder(t.x, r.x, context);
  reference->forward(r.x, t.weight, t.bias, r.y);
  Tensor rows = Tensor::zeros(shape.output());
  reorder(t.y, rows, context);
  for (std::int64_t i = 0; i < rows.elements(); ++i)
    if (!(std::abs(rows.data<float>()[i] - r.y.data<float>()[i]) < 1e-3f)) return false;
  return true;
}

void convolution(benchmark::State& state, const Conv2dShape& shape, Conv2dChoice choice, MathMode mathMode) {
  if (const auto why = whyNoMathMode(Device::cpu(), mathMode); !why.empty())
    return state.SkipWithError(why.c_str());
  Context context(Device::cpu(), {.mathMode = mathMode});
  const ContextScope scope(context);
  auto plan = planConv2d(shape, context, choice);
  Tensors t(shape, *plan);
  plan->forward(t.x, t.weight, t.bias, t.y);
  if (!agrees(shape, context, t)) return state.SkipWithError("the result is wrong");
  const bool first = shape.inChannels == 1;  // a network's input has no gradient
  for (auto step : state) {
    plan->forward(t.x, t.weight, t.bias, t.y);
    plan->backwardWeights(t.x, t.gradY, t.gradWeight, t.gradBias);
    if (!first) plan->backwardData(t.gradY, t.weight, t.gradX);
    benchmark::ClobberMemory();
  }
  const double passes = first ? 2 : 3;
  const auto operations = 2.0 * static_cast<double>(shape.output().elements()) *
                          static_cast<double>(shape.inChannels) *
                          static_cast<double>(shape.kernel[0] * shape.kernel[1]) * passes;
  state.counters["FLOP/s"] = benchmark::Counter(operations, benchmark::Counter::kIsIterationInvariantRate);
  state.SetItemsProcessed(state.iterations() * shape.batch);
  state.SetLabel(plan->implementation());
}

/// ResNet-18's distinct convolutions of 28x28 images.
std::vector<std::pair<std::string, Conv2dShape>> resnet18(std::int64_t batch) {
  std::vector<std::pair<std::string, Conv2dShape>> shapes;
  const auto add = [&](std::int64_t in, std::int64_t size, std::int64_t out, std::int64_t kernel,
                       std::int64_t stride) {
    const Conv2dShape shape{.batch = batch,
                            .inChannels = in,
                            .height = size,
                            .width = size,
                            .outChannels = out,
                            .kernel = {kernel, kernel},
                            .stride = {stride, stride},
                            .padding = {kernel / 2, kernel / 2}};
    shapes.emplace_back("resnet18 batch " + std::to_string(batch) + ", " + std::to_string(in) + "x" +
                            std::to_string(size) + "x" + std::to_string(size) + " to " + std::to_string(out) +
                            ", " + std::to_string(kernel) + "x" + std::to_string(kernel) +
                            (stride == 2 ? " stride 2" : ""),
                        shape);
  };
  add(1, 28, 64, 3, 1);
  for (std::int64_t channels = 64, size = 28; channels <= 512; channels *= 2, size = (size + 1) / 2) {
    add(channels, size, channels, 3, 1);
    if (channels == 512) break;
    add(channels, size, 2 * channels, 3, 2);
    add(channels, size, 2 * channels, 1, 2);
  }
  return shapes;
}

enum class Pass { Forward, BackwardData, BackwardWeights };

/// One pass, its weights' reorders included.
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
  Tensors t(shape, *plan);
  plan->forward(t.x, t.weight, t.bias, t.y);
  if (!agrees(shape, context, t)) return state.SkipWithError("the result is wrong");
  for (auto step : state) {
    if (pass == Pass::Forward) plan->forward(t.x, t.weight, t.bias, t.y);
    if (pass == Pass::BackwardData) plan->backwardData(t.gradY, t.weight, t.gradX);
    if (pass == Pass::BackwardWeights) plan->backwardWeights(t.x, t.gradY, t.gradWeight, t.gradBias);
    benchmark::ClobberMemory();
  }
  const auto operations = 2.0 * static_cast<double>(shape.output().elements()) *
                          static_cast<double>(shape.inChannels) *
                          static_cast<double>(shape.kernel[0] * shape.kernel[1]);
  state.counters["FLOP/s"] = benchmark::Counter(operations, benchmark::Counter::kIsIterationInvariantRate);
  state.SetLabel(plan->implementation());
}

void registerResnet18(const std::string& name, Conv2dChoice choice, MathMode mathMode = MathMode::Float32) {
  const auto has = [&](const Conv2dShape& shape, Pass pass) {
    if (choice == Conv2dChoice::Winograd && (shape.kernel[0] != 3 || shape.stride[0] != 1)) return false;
    return shape.inChannels > 1 || pass != Pass::BackwardData;  // a network's input has no gradient
  };
  const std::pair<const char*, Pass> passes[] = {{"/forward/", Pass::Forward},
                                                 {"/backward data/", Pass::BackwardData},
                                                 {"/backward weights/", Pass::BackwardWeights}};
  for (const std::int64_t batch : {64, 8})
    for (const auto& [shapeName, shape] : resnet18(batch))
      for (const auto& [passName, pass] : passes)
        if (has(shape, pass))
          benchmark::RegisterBenchmark((shapeName + passName + name).c_str(), onePass, shape, choice, pass,
                                       mathMode);
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
    benchmark::RegisterBenchmark((std::string("conv2d 1x28x28 to 20, 5x5/") + name).c_str(), convolution,
                                 kFirst, choice, mathMode);
    benchmark::RegisterBenchmark((std::string("conv2d 20x12x12 to 50, 5x5/") + name).c_str(), convolution,
                                 kSecond, choice, mathMode);
    if (choice != Conv2dChoice::RowMajor) registerResnet18(name, choice, mathMode);
  }
  registerResnet18("winograd", Conv2dChoice::Winograd);
  return true;
}();

}  // namespace
