// Times the convolutions of the MNIST network and of ResNet-18 with each implementation on a device, pass by
// pass, and shows which one is chosen.
#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <cmath>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/base/random.h"
#include "muster/core/ops/conv2d.h"
#include "muster/core/ops/reorder.h"
#include "tests/bench/command_line.h"
#include "tests/bench/device_timing.h"

namespace {

using namespace muster;
using namespace muster::bench;

struct Layer {
  const char* name;
  Conv2dShape shape;
  bool first = false;  ///< of its network, which needs no gradient of the input
};

std::vector<Layer> layers(std::int64_t batch) {
  const auto square = [&](std::int64_t in, std::int64_t size, std::int64_t out, std::int64_t stride) {
    return Conv2dShape{.batch = batch,
                       .inChannels = in,
                       .height = size,
                       .width = size,
                       .outChannels = out,
                       .kernel = {3, 3},
                       .stride = {stride, stride},
                       .padding = {1, 1}};
  };
  return {
      {"MNIST, first",
       {.batch = batch, .inChannels = 1, .height = 28, .width = 28, .outChannels = 20, .kernel = {5, 5}},
       true},
      {"MNIST, second",
       {.batch = batch, .inChannels = 20, .height = 12, .width = 12, .outChannels = 50, .kernel = {5, 5}}},
      {"ResNet, stem", square(1, 28, 64, 1), true},
      {"ResNet, stem of colours", square(3, 32, 64, 1), true},
      {"ResNet, stage 1", square(64, 28, 64, 1)},
      {"ResNet, into stage 2", square(64, 28, 128, 2)},
      {"ResNet, stage 4", square(512, 4, 512, 1)},
  };
}

constexpr std::pair<Conv2dChoice, const char*> kChoices[] = {
    {Conv2dChoice::RowMajor, "row-major"},        {Conv2dChoice::ChannelsLast, "channels-last"},
    {Conv2dChoice::PaddedChannels, "padded"},     {Conv2dChoice::ChannelBlocks, "channel blocks"},
    {Conv2dChoice::Winograd, "Winograd"},         {Conv2dChoice::Direct, "direct"},
    {Conv2dChoice::ImplicitGemm, "implicit GEMM"}};

Tensor random(const Shape& shape, Layout layout, std::string_view name, Context& context) {
  Tensor rows = Tensor::empty(shape);
  const RandomStream stream(1, name);
  for (std::uint64_t i = 0; auto& value : rows.span<float>())
    value = static_cast<float>(stream.uniform(i++) - 0.5);
  Tensor tensor = Tensor::zeros(shape, DType::Float32, context.device(), layout);
  reorder(copyTo(rows, context.device()), tensor, context);
  context.synchronize();
  return tensor;
}

struct Passes {
  double forward, weights, data;  // seconds
  Tensor y, gradWeight, gradX;    // row-major, on the CPU
};

Tensor rowsOf(const Tensor& tensor, Context& context) {
  Tensor rows = Tensor::zeros(tensor.shape(), DType::Float32, context.device());
  reorder(tensor, rows, context);
  context.synchronize();
  return copyTo(rows, Device::cpu());
}

Passes measure(const Conv2dShape& shape, Conv2dPlan& plan, Context& context, const Repeats& repeats) {
  const Tensor x = random(shape.input(), plan.inputLayout(), "x", context),
               weight = random(shape.weight(), Layout::RowMajor, "weight", context),
               bias = random({shape.outChannels}, Layout::RowMajor, "bias", context),
               gradY = random(shape.output(), plan.outputLayout(), "gradY", context);
  const auto zeros = [&](const Shape& of, Layout layout = Layout::RowMajor) {
    return Tensor::zeros(of, DType::Float32, context.device(), layout);
  };
  Tensor y = zeros(shape.output(), plan.outputLayout()), gradX = zeros(shape.input(), plan.inputLayout()),
         gradWeight = zeros(shape.weight()), gradBias = zeros({shape.outChannels});
  Passes passes{};
  passes.forward = secondsOf([&] { plan.forward(x, weight, bias, y); }, context, repeats);
  passes.weights = secondsOf([&] { plan.backwardWeights(x, gradY, gradWeight, gradBias); }, context, repeats);
  passes.data = secondsOf([&] { plan.backwardData(gradY, weight, gradX); }, context, repeats);
  passes.y = rowsOf(y, context);
  passes.gradWeight = rowsOf(gradWeight, context);
  passes.gradX = rowsOf(gradX, context);
  return passes;
}

/// The largest difference relative to the largest number; NaN if a value is NaN. Modes that round factors
/// differ slightly.
double difference(const Tensor& a, const Tensor& b) {
  double most = 0, size = 0;
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    const double of = std::abs(b.data<float>()[i]);
    const double by = std::abs(a.data<float>()[i] - b.data<float>()[i]);
    if (std::isnan(by)) return by;
    most = std::max(most, by);
    size = std::max(size, of);
  }
  return most / size;
}

bool agree(const Passes& passes, const Passes& first) {
  constexpr double kMost = 0.02;
  return difference(passes.y, first.y) < kMost && difference(passes.gradWeight, first.gradWeight) < kMost &&
         difference(passes.gradX, first.gradX) < kMost;
}

/// The name of a choice in the table of core/backend/cuda/conv2d_table.cpp.
std::string nameInTable(Conv2dChoice choice) {
  switch (choice) {
    case Conv2dChoice::RowMajor:
      return "RowMajor";
    case Conv2dChoice::ChannelsLast:
      return "ChannelsLast";
    case Conv2dChoice::PaddedChannels:
      return "PaddedChannels";
    case Conv2dChoice::ImplicitGemm:
      return "ImplicitGemm";
    default:
      return "Direct";
  }
}

/// Reports a layer that does not choose the fastest implementation, with the line for the table.
void advise(const Layer& layer, double chosen, double best, Conv2dChoice choice, Context& context) {
  if (context.device().isCpu() || best >= 0.95 * chosen) return;
  const auto properties = propertiesOf(context.device());
  const Conv2dShape& s = layer.shape;
  const char* const mode = context.mathMode() == MathMode::BFloat16        ? "BFloat16"
                           : context.mathMode() == MathMode::TensorFloat32 ? "TensorFloat32"
                                                                           : "Float32";
  fmt::print(
      "try: {}: {:.1f} us instead of {:.1f}, without reorders, by this line in "
      "core/backend/cuda/conv2d_table.cpp: "
      "{{{}, MathMode::{}, {}, {}, {}, Conv2dChoice::{}}},\n",
      layer.name, 1e6 * best, 1e6 * chosen, 10 * properties.major + properties.minor, mode, s.inChannels,
      s.outChannels, s.kernel[0], nameInTable(choice));
}

/// Null if this device has no such implementation for the shape.
std::unique_ptr<Conv2dPlan> planned(const Conv2dShape& shape, Context& context, Conv2dChoice choice) try {
  return planConv2d(shape, context, choice);
} catch (const InvalidArgument&) {
  return nullptr;
}

/// Reports implementations that fail or compute wrong results, and continues with the others. @return how
/// many there were.
int measureLayer(const Layer& layer, Context& context, const Repeats& repeats) {
  int failures = 0;
  const auto tell = [&](const char* name, const std::string& what) {
    fmt::print("{:<24} {:<15} {}\n", layer.name, name, what);
    ++failures;
  };
  std::string chosen;
  try {
    chosen = planConv2d(layer.shape, context)->implementation();
  } catch (const std::exception& error) {
    tell("(what it takes)", error.what());
  }
  Passes first{};
  double ofChosen = 0, best = INFINITY;
  Conv2dChoice bestChoice = Conv2dChoice::Auto;
  for (const auto& [choice, name] : kChoices) {
    std::unique_ptr<Conv2dPlan> plan;
    Passes passes{};
    try {
      plan = planned(layer.shape, context, choice);
      if (!plan) continue;
      passes = measure(layer.shape, *plan, context, repeats);
    } catch (const std::exception& error) {
      tell(name, error.what());
      continue;
    }
    if (!first.y.defined()) first = passes;
    if (!agree(passes, first)) {
      tell(name, "WRONG: its results are not those of the layer's first row; " + plan->implementation());
      continue;
    }
    fmt::print("{:<24} {:<15} {:>9.1f} {:>9.1f} {:>9.1f}  {} {}\n", layer.name, name, 1e6 * passes.forward,
               1e6 * passes.weights, 1e6 * passes.data, plan->implementation() == chosen ? "*" : " ",
               plan->implementation());
    const double all = passes.forward + passes.weights + (layer.first ? 0 : passes.data);
    if (plan->implementation() == chosen) ofChosen = all;
    if (all < best) {
      best = all;
      bestChoice = choice;
    }
  }
  advise(layer, ofChosen, best, bestChoice, context);
  return failures;
}

}  // namespace

int main(int argc, char** argv) try {
  namespace po = boost::program_options;
  std::string device = "cuda:0";
  std::int64_t batch = 128;
  Repeats repeats;
  po::options_description description("How fast a device computes convolutions, by implementation and pass");
  auto add = description.add_options();
  add("device", po::value(&device), "which [cuda:0]");
  add("batch", po::value(&batch), "images [128]");
  add("rounds", po::value(&repeats.rounds), "measurements of each kind [5]");
  po::variables_map given;
  if (!readCommandLine(argc, argv, description, given)) return 0;
  if (repeats.rounds < 1 || batch < 1) throw std::invalid_argument("rounds and batch must be positive");
  Context context(Device::parse(device));
  const ContextScope scope(context);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  fmt::print(
      "Convolutions of {} images in {}, microseconds; medians of {} rounds. *: what the layer takes\n\n",
      batch, nameOf(context.mathMode()), repeats.rounds);
  fmt::print("{:<24} {:<15} {:>9} {:>9} {:>9}\n", "layer", "implementation", "forward", "d weights",
             "d input");
  int failures = 0;
  for (const Layer& layer : layers(batch)) failures += measureLayer(layer, context, repeats);
  return failures == 0 ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "device_convolutions: {}\n", error.what());
  return 1;
}
