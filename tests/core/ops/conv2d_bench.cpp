// The convolutions of the MNIST network at batch 128 on one thread, by each implementation.
#include "muster/core/ops/conv2d.h"

#include <benchmark/benchmark.h>

#include <cmath>

#include "muster/core/base/random.h"
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

/// Against the row-major implementation: what is fast and wrong is not reported.
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

void convolution(benchmark::State& state, const Conv2dShape& shape, Conv2dChoice choice) {
  Context context;
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

const bool kRegistered = [] {
  const std::pair<const char*, Conv2dChoice> choices[] = {{"row-major", Conv2dChoice::RowMajor},
                                                          {"channels-last", Conv2dChoice::ChannelsLast},
                                                          {"channel-blocks", Conv2dChoice::ChannelBlocks},
                                                          {"auto", Conv2dChoice::Auto}};
  for (const auto& [name, choice] : choices) {
    benchmark::RegisterBenchmark((std::string("conv2d 1x28x28 to 20, 5x5/") + name).c_str(), convolution,
                                 kFirst, choice);
    benchmark::RegisterBenchmark((std::string("conv2d 20x12x12 to 50, 5x5/") + name).c_str(), convolution,
                                 kSecond, choice);
  }
  return true;
}();

}  // namespace
