#include "muster/core/backend/cpu/conv/winograd_conv2d.h"

#include <algorithm>
#include <array>

#include "muster/core/backend/cpu/conv/onednn_conv2d.h"
#include "muster/core/backend/cpu/conv/weight_blocks.h"
#include "muster/core/backend/cpu/conv/winograd_division.h"
#include "muster/core/backend/cpu/conv/winograd_kernels.h"
#include "muster/core/backend/cpu/conv/winograd_pass.h"
#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/backend/cpu/simd.h"
#include "muster/core/backend/cpu/state.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

namespace muster::cpu {
namespace {

using winograd::apart;
using winograd::ChannelTask;
using winograd::Chunk;
using winograd::Division;
using winograd::Images;
using winograd::kBlock;
using winograd::Kernels;
using winograd::kTaps;
using winograd::Pass;
using winograd::Prefetch;
using winograd::Range;
using winograd::WeightBlock;

static_assert(kBlock == kLayoutBlock);
constexpr std::int64_t kBlockWeights = kTaps * kBlock * kBlock;

const Kernels* kernelsOfMachine() {
#if defined(__x86_64__)
  if (instructionSet() == InstructionSet::Avx512) return &winograd::avx512Kernels();
  if (instructionSet() == InstructionSet::Avx2) return &winograd::avx2Kernels();
#endif
  return nullptr;
}

class WinogradConv2dPlan final : public Conv2dPlan {
 public:
  WinogradConv2dPlan(const Conv2dShape& shape, Context& context, WinogradPasses passes);

  Layout inputLayout() const override { return Layout::ChannelBlocks; }
  Layout outputLayout() const override { return Layout::ChannelBlocks; }
  std::string implementation() const override { return kernels_.name; }

  void forward(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y) override;
  void backwardData(const Tensor& gradY, const Tensor& weight, Tensor& gradX) override;
  void backwardWeights(const Tensor& x, const Tensor& gradY, Tensor& gradWeight, Tensor& gradBias) override;

 private:
  float* at(std::int64_t offset) const {
    return reinterpret_cast<float*>(stateOf(context_).workspace.data()) + offset;
  }

  /// The weights between some summed channels and a task's in blocks, in memory of its thread.
  struct Blocked {
    BlockRange out, in;
    WeightBlock block;
    float* data;
  };
  [[maybe_unused]] Blocked blocked(const ChannelTask& task, Range summed, bool backward) const;
  /// Calls f for at most Division::kSummedAtOnce channels of a range at a time.
  template <typename F>
  static void forEachSlice(Range channels, F f) {
    for (std::int64_t from = channels.begin; from < channels.end; from += Division::kSummedAtOnce)
      f(Range{from, std::min(from + Division::kSummedAtOnce, channels.end)});
  }
  void transform(const Pass& pass, const ChannelTask& task, bool backward, const float* weight) const;
  void transformBack(const ChannelTask& task, Range summed, const float* gradients, std::int64_t place,
                     float* gradWeight) const;
  void addSums(const Chunk& chunk, const ChannelTask& task, const float* sums, float* biases) const;

  /// The tensors of a convolution; bias: may be null.
  struct Operands {
    const float *x, *weight, *bias;
    float* y;
  };
  void convolve(const Pass& pass, bool backward, const Operands& operands);
  void convolve(const Pass& pass, bool backward, const Operands& operands, std::int64_t thread, Range groups,
                Range tiles) const;
  /// Gradients of the weights of some tasks, numbered by group and part.
  void weightGradients(const float* x, const float* gradY, std::int64_t thread, Range tasks,
                       float* gradWeight, float* biases) const;

  void expectInput(const char* name, const Tensor& tensor) const {
    muster::detail::expectTensor("conv2d", name, tensor, {shape_.input(), Layout::ChannelBlocks});
  }
  void expectOutput(const char* name, const Tensor& tensor) const {
    muster::detail::expectTensor("conv2d", name, tensor, {shape_.output(), Layout::ChannelBlocks});
  }
  void expectParameter(const char* name, const Tensor& tensor, const Shape& shape) const {
    muster::detail::expectTensor("conv2d", name, tensor, {shape});
  }

  Conv2dShape shape_;
  Context& context_;
  const Kernels& kernels_;
  WinogradPasses passes_;
  std::unique_ptr<Conv2dPlan> other_;  // for the other passes; null if there are none
  Pass forward_, backward_;            // the gradient of the weights has the tiles of `forward_`
  Division division_;
};

WinogradConv2dPlan::WinogradConv2dPlan(const Conv2dShape& shape, Context& context, WinogradPasses passes)
    : shape_(shape),
      context_(context),
      kernels_(*kernelsOfMachine()),
      passes_(passes),
      forward_(shape.input(), shape.output(), shape.padding, kernels_.rows),
      backward_(shape.output(), shape.input(), {2 - shape.padding[0], 2 - shape.padding[1]}, kernels_.rows),
      division_(forward_, backward_, kernels_.group, context.threads()) {
  if (passes != WinogradPasses{})
    other_ = OneDnnConv2dPlanner(shape, Layout::ChannelBlocks, Layout::ChannelBlocks, context).plan();
  stateOf(context).workspace.reserve(division_.bytes());
}

WinogradConv2dPlan::Blocked WinogradConv2dPlan::blocked(const ChannelTask& task, Range summed,
                                                        bool backward) const {
  const BlockRange sums{summed.begin / kBlock, summed.end / kBlock},
      vectors{task.from / kBlock, (task.from + task.channels) / kBlock};
  const BlockRange out = backward ? sums : vectors, in = backward ? vectors : sums;
  const std::int64_t row = (in.end - in.begin) * kBlockWeights;
  const WeightBlock block{.summed = backward ? row : kBlockWeights,
                          .vector = backward ? kBlockWeights : row,
                          .rotated = backward};
  return {out, in, block, at(division_.blocksOf(task.thread))};
}

void WinogradConv2dPlan::transform(const Pass& pass, const ChannelTask& task, bool backward,
                                   const float* weight) const {
#if defined(__x86_64__)
  const WeightBlocks blocks{shape_.outChannels, shape_.inChannels, kTaps, kBlock, !backward};
  const std::int64_t place = apart(pass.in.channels() * task.channels);
  forEachSlice(task.summedOf(pass.in), [&](Range summed) {
    const Blocked some = blocked(task, summed, backward);
    toBlocksAvx2(blocks, some.out, some.in, weight, some.data);
    kernels_.weights(some.block, summed.end - summed.begin, task.channels, some.data, place,
                     at(division_.weightsOf(pass, task)) + summed.begin * task.channels);
  });
#else
  static_cast<void>(pass), static_cast<void>(task), static_cast<void>(backward), static_cast<void>(weight);
#endif
}

void WinogradConv2dPlan::transformBack(const ChannelTask& task, Range summed, const float* gradients,
                                       std::int64_t place, float* gradWeight) const {
#if defined(__x86_64__)
  const Blocked some = blocked(task, summed, false);
  const WeightBlocks blocks{shape_.outChannels, shape_.inChannels, kTaps, kBlock, true};
  kernels_.weightGradients(some.block, summed.end - summed.begin, task.channels, gradients, place, some.data);
  fromBlocksAvx2(blocks, some.out, some.in, some.data, gradWeight);
#else
  static_cast<void>(task), static_cast<void>(summed), static_cast<void>(gradients), static_cast<void>(place);
  static_cast<void>(gradWeight);
#endif
}

void WinogradConv2dPlan::convolve(const Pass& pass, bool backward, const Operands& operands) {
  const std::int64_t groups = division_.groupsOf(pass.out), parts = division_.partsOf(pass.out);
  if (division_.keepsWeights(pass))
    parallelParts(context_, groups * parts, [&](std::int64_t thread, std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        transform(pass, division_.taskOf(pass.out, thread, i / parts, i % parts, parts), backward,
                  operands.weight);
    });
  const bool byTiles = division_.splitsTiles(pass);
  parallelParts(context_, byTiles ? pass.count : groups,
                [&](std::int64_t thread, std::int64_t begin, std::int64_t end) {
                  if (begin == end) return;
                  const Range some{begin, end};
                  convolve(pass, backward, operands, thread, byTiles ? Range{0, groups} : some,
                           byTiles ? some : Range{0, pass.count});
                });
}

void WinogradConv2dPlan::convolve(const Pass& pass, bool backward, const Operands& operands,
                                  std::int64_t thread, Range groups, Range tiles) const {
  float* const inputs = at(division_.inputsOf(pass, thread));
  float* const products = at(division_.productsOf(pass, thread));
  const std::int64_t summed = pass.in.channels(), count = groups.end - groups.begin;
  pass.forEachChunk(tiles, [&](const Chunk& chunk, const Chunk& next) {
    kernels_.inputs(pass.in, pass.tiles, chunk, {0, summed}, operands.x, inputs);
    for (std::int64_t i = 0; i < count; ++i) {
      const ChannelTask task = division_.taskOf(pass.out, thread, groups.begin + i);
      if (!division_.keepsWeights(pass)) transform(pass, task, backward, operands.weight);
      const std::int64_t begin = pass.in.blocks * i / count * kBlock,
                         end = pass.in.blocks * (i + 1) / count * kBlock;
      kernels_.products(chunk, summed, task.channels, inputs, at(division_.weightsOf(pass, task)), products,
                        Prefetch{&pass.in, &pass.tiles, next, begin, end - begin, operands.x},
                        Prefetch{&pass.out, &pass.tiles, chunk, task.from, task.channels, operands.y});
      kernels_.outputs(pass.out, pass.tiles, chunk, task.from, task.channels, products,
                       operands.bias ? operands.bias + task.from : nullptr, operands.y);
    }
  });
}

void WinogradConv2dPlan::forward(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y) {
  if (!passes_.forward) return other_->forward(x, weight, bias, y);
  expectInput("x", x);
  expectParameter("weight", weight, shape_.weight());
  if (bias.defined()) expectParameter("bias", bias, Shape{shape_.outChannels});
  expectOutput("y", y);
  convolve(forward_, false,
           {x.data<float>(), weight.data<float>(), bias.defined() ? bias.data<float>() : nullptr,
            y.data<float>()});
}

void WinogradConv2dPlan::backwardData(const Tensor& gradY, const Tensor& weight, Tensor& gradX) {
  if (!passes_.backwardData) return other_->backwardData(gradY, weight, gradX);
  expectOutput("gradY", gradY);
  expectParameter("weight", weight, shape_.weight());
  expectInput("gradX", gradX);
  convolve(backward_, true, {gradY.data<float>(), weight.data<float>(), nullptr, gradX.data<float>()});
}

void WinogradConv2dPlan::addSums(const Chunk& chunk, const ChannelTask& task, const float* sums,
                                 float* biases) const {
  for (std::int64_t t = 0; t < chunk.count; ++t, sums += task.channels)
    for (std::int64_t c = 0; c < task.channels; ++c) biases[task.from + c] += sums[c];
}

void WinogradConv2dPlan::weightGradients(const float* x, const float* gradY, std::int64_t thread, Range tasks,
                                         float* gradWeight, float* biases) const {
  const Pass& pass = forward_;
  const std::int64_t all = pass.in.channels(), parts = division_.partsOf(pass.out);
  float* const inputs = at(division_.inputsOf(pass, thread));
  float* const gradients = at(division_.productsOf(pass, thread));
  float* const sums = at(division_.sumsOf(pass, thread));
  const bool adds = pass.count > pass.atOnce;  // several chunks
  pass.forEachChunk({0, pass.count}, [&](const Chunk& chunk, const Chunk& next) {
    if (parts == 1) kernels_.inputs(pass.in, pass.tiles, chunk, {0, all}, x, inputs);
    for (std::int64_t i = tasks.begin; i < tasks.end; ++i) {
      const ChannelTask task = division_.taskOf(pass.out, thread, i / parts, i % parts, parts);
      const Range range = task.summedOf(pass.in);
      if (parts > 1) kernels_.inputs(pass.in, pass.tiles, chunk, range, x, inputs);
      kernels_.gradients(pass.out, pass.tiles, chunk, {task.from, task.from + task.channels}, gradY,
                         gradients, sums);
      if (biases && task.part == 0) addSums(chunk, task, sums, biases);
      forEachSlice(range, [&](Range some) {
        const std::int64_t place = apart((adds ? all : some.end - some.begin) * task.channels);
        float* const products = adds ? at(division_.gradientsOf(pass, task)) + some.begin * task.channels
                                     : at(division_.sliceOf(pass, thread));
        kernels_.weightProducts(chunk, all, some, task.channels, inputs, gradients, chunk.first > 0, place,
                                products);
        if (next.count == 0) transformBack(task, some, products, place, gradWeight);
      });
    }
  });
}

void WinogradConv2dPlan::backwardWeights(const Tensor& x, const Tensor& gradY, Tensor& gradWeight,
                                         Tensor& gradBias) {
  if (!passes_.backwardWeights) return other_->backwardWeights(x, gradY, gradWeight, gradBias);
  expectInput("x", x);
  expectOutput("gradY", gradY);
  expectParameter("gradWeight", gradWeight, shape_.weight());
  if (gradBias.defined()) expectParameter("gradBias", gradBias, Shape{shape_.outChannels});
  float* const biases = gradBias.defined() ? gradBias.data<float>() : nullptr;
  if (biases) std::fill_n(biases, shape_.outChannels, 0.0f);
  parallelParts(context_, division_.groupsOf(forward_.out) * division_.partsOf(forward_.out),
                [&](std::int64_t thread, std::int64_t begin, std::int64_t end) {
                  if (begin < end)
                    weightGradients(x.data<float>(), gradY.data<float>(), thread, {begin, end},
                                    gradWeight.data<float>(), biases);
                });
}

}  // namespace

bool winogradConv2dSupports(const Conv2dShape& shape, const Context& context) {
  using Pair = std::array<std::int64_t, 2>;
  return kernelsOfMachine() && context.mathMode() == MathMode::Float32 && shape.groups == 1 &&
         shape.kernel == Pair{3, 3} && shape.stride == Pair{1, 1} && shape.dilation == Pair{1, 1} &&
         shape.inChannels % kBlock == 0 && shape.outChannels % kBlock == 0;
}

std::unique_ptr<Conv2dPlan> planWinogradConv2d(const Conv2dShape& shape, Context& context,
                                               WinogradPasses passes) {
  shape.validate();
  require(winogradConv2dSupports(shape, context),
          "conv2d: Winograd's algorithm needs one group, a kernel 3x3, stride and dilation 1, channels in "
          "whole blocks of sixteen, float32 and AVX2");
  return std::make_unique<WinogradConv2dPlan>(shape, context, passes);
}

}  // namespace muster::cpu
