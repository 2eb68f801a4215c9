#include "muster/core/backend/cpu/winograd_conv2d.h"

#include <algorithm>
#include <array>

#include "muster/core/backend/cpu/onednn_conv2d.h"
#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/backend/cpu/simd.h"
#include "muster/core/backend/cpu/state.h"
#include "muster/core/backend/cpu/weight_blocks.h"
#include "muster/core/backend/cpu/winograd_kernels.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

namespace muster::cpu {
namespace {

using winograd::apart;
using winograd::Chunk;
using winograd::Images;
using winograd::kBlock;
using winograd::Kernels;
using winograd::kPlaces;
using winograd::kTaps;
using winograd::kTile;
using winograd::Prefetch;
using winograd::Range;
using winograd::Tiles;
using winograd::WeightBlock;

static_assert(kBlock == kLayoutBlock);
constexpr std::int64_t kBlockWeights = kTaps * kBlock * kBlock;

/// Bytes of a chunk's inputs. Transformed weights up to `kSmallWeights` bytes stay in the cache during all
/// chunks of tiles, so chunks can be small. Larger weights should be read seldom, so chunks are large.
constexpr std::int64_t kSmallWeights = 4 << 20, kSmallChunk = 640 << 10, kLargeChunk = 5 << 20;
/// Summed channels whose weights a thread transforms at once, so that they stay in its L2 cache in between.
constexpr std::int64_t kSummedAtOnce = 64;

const Kernels* kernelsOfMachine() {
#if defined(__x86_64__)
  if (instructionSet() == InstructionSet::Avx512) return &winograd::avx512Kernels();
  if (instructionSet() == InstructionSet::Avx2) return &winograd::avx2Kernels();
#endif
  return nullptr;
}

/// The chunks of output tiles that a pass computes one after the other.
struct Pass {
  Images in, out;
  Tiles tiles;
  std::int64_t count;   // number of tiles
  std::int64_t atOnce;  // tiles per chunk

  Pass(const Shape& input, const Shape& output, std::array<std::int64_t, 2> padding, std::int64_t rows)
      : in{input[2], input[3], input[1] / kBlock},
        out{output[2], output[3], output[1] / kBlock},
        tiles{(out.height + kTile - 1) / kTile, (out.width + kTile - 1) / kTile, {padding[0], padding[1]}},
        count(output[0] * tiles.rows * tiles.columns) {
    constexpr std::int64_t kFloat = sizeof(float);
    const bool small = kPlaces * in.channels() * out.channels() * kFloat <= kSmallWeights;
    const std::int64_t tile = kPlaces * apart(in.channels()) * kFloat;
    const std::int64_t fit = std::max((small ? kSmallChunk : kLargeChunk) / tile, rows);
    const std::int64_t parts = (count + fit - 1) / fit, even = (count + parts - 1) / parts;
    atOnce = std::min(count, (even + rows - 1) / rows * rows);
  }

  std::int64_t chunks() const { return (count + atOnce - 1) / atOnce; }
  /// Empty after the last one.
  Chunk chunk(std::int64_t i) const {
    const std::int64_t first = std::min(i * atOnce, count);
    return {first, std::min(atOnce, count - first)};
  }
};

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
  /// A thread's share of a phase: a group of channels that are computed together, and one of `parts` parts of
  /// the group's tiles or summed channels.
  struct Task {
    std::int64_t group, from, channels;
    std::int64_t part, parts;
    std::int64_t thread;

    Range of(std::int64_t count) const { return {count * part / parts, count * (part + 1) / parts}; }
  };

  std::int64_t groupsOf(const Images& images) const {
    return (images.channels() + kernels_.group - 1) / kernels_.group;
  }
  /// One if there is a group for each thread.
  std::int64_t partsOf(const Images& images) const {
    return (context_.threads() + groupsOf(images) - 1) / groupsOf(images);
  }
  /// Calls f(task) on the context's threads. One thread forms each sum, so sums do not depend on the threads.
  template <typename F>
  void forEachTask(const Images& images, F f) {
    const std::int64_t parts = partsOf(images);
    const auto run = [&](std::int64_t thread, std::int64_t begin, std::int64_t end) {
      for (std::int64_t task = begin; task < end; ++task) {
        const std::int64_t group = task / parts, from = group * kernels_.group;
        f(Task{group, from, std::min(kernels_.group, images.channels() - from), task % parts, parts, thread});
      }
    };
    parallelParts(context_, groupsOf(images) * parts, run);
  }

  // Functions for parts of the workspace.
  std::size_t reserve(std::int64_t floats) {
    const std::size_t offset = bytes_;
    bytes_ += (static_cast<std::size_t>(floats) * sizeof(float) + 63) / 64 * 64;
    return offset;
  }
  float* at(std::size_t offset) const {
    return reinterpret_cast<float*>(stateOf(context_).workspace.data() + offset);
  }
  /// Whether memory holds the transformed weights of all groups; else those of one group per thread.
  bool keepsWeights(const Pass& pass) const { return pass.chunks() > 1 || partsOf(pass.out) > 1; }
  float* weightsOf(const Pass& pass, const Task& task) const {
    return at(weights_) + (keepsWeights(pass) ? task.group : task.thread) * weightsOfGroup(pass);
  }
  std::int64_t blockedOfThread() const { return kSummedAtOnce * kernels_.group * kTaps; }
  std::int64_t weightsOfGroup(const Pass& pass) const {
    return kPlaces * apart(pass.in.channels() * kernels_.group);
  }
  std::int64_t productsOfGroup(std::int64_t tiles) const { return kPlaces * apart(tiles * kernels_.group); }

  /// The weights between some summed channels and a task's in blocks, in memory of its thread.
  struct Blocked {
    BlockRange out, in;
    WeightBlock block;
    float* data;
  };
  Blocked blocked(const Task& task, Range summed, bool backward) const;
  /// Calls f for at most kSummedAtOnce channels of a task's part of all summed channels at a time.
  template <typename F>
  static void forEachSlice(const Task& task, const Images& images, F f) {
    const Range blocks = task.of(images.blocks);
    for (std::int64_t from = blocks.begin * kBlock; from < blocks.end * kBlock; from += kSummedAtOnce)
      f(Range{from, std::min(from + kSummedAtOnce, blocks.end * kBlock)});
  }
  void transform(const Task& task, Range summed, bool backward, const float* weight, std::int64_t place,
                 float* to) const;
  void transformBack(const Task& task, Range summed, const float* gradients, std::int64_t place,
                     float* gradWeight) const;
  void addSums(const Chunk& chunk, const Task& task, float* biases) const;
  void convolve(const Pass& pass, bool backward, const float* x, const float* weight, const float* bias,
                float* y);

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
  std::size_t bytes_ = 0;              // of the workspace
  std::size_t blocks_ = 0;             // [thread] some weights in blocks of channels
  std::size_t weights_ = 0;    // transformed weights, or gradients of weights before they are transformed
  std::size_t inputs_ = 0;     // transformed, of a chunk
  std::size_t products_ = 0;   // [thread] products of a group
  std::size_t gradients_ = 0;  // transformed, of a chunk
  std::size_t sums_ = 0;       // of the gradients of each tile of a chunk
};

WinogradConv2dPlan::WinogradConv2dPlan(const Conv2dShape& shape, Context& context, WinogradPasses passes)
    : shape_(shape),
      context_(context),
      kernels_(*kernelsOfMachine()),
      passes_(passes),
      forward_(shape.input(), shape.output(), shape.padding, kernels_.rows),
      backward_(shape.output(), shape.input(), {2 - shape.padding[0], 2 - shape.padding[1]}, kernels_.rows) {
  if (passes != WinogradPasses{})
    other_ = OneDnnConv2dPlanner(shape, Layout::ChannelBlocks, Layout::ChannelBlocks, context).plan();
  std::int64_t weights = 0, inputs = 0, products = 0;
  for (const Pass* pass : {&forward_, &backward_}) {
    const std::int64_t groups = keepsWeights(*pass) ? groupsOf(pass->out) : std::int64_t{context.threads()};
    weights = std::max(weights, groups * weightsOfGroup(*pass));
    inputs = std::max(inputs, kPlaces * apart(pass->atOnce * apart(pass->in.channels())));
    products = std::max(products, productsOfGroup(pass->atOnce));
  }
  blocks_ = reserve(blockedOfThread() * context.threads());
  weights_ = reserve(weights);
  inputs_ = reserve(inputs);
  products_ = reserve(products * context.threads());
  gradients_ = reserve(groupsOf(forward_.out) * productsOfGroup(forward_.atOnce));
  sums_ = reserve(forward_.atOnce * shape.outChannels);
  stateOf(context).workspace.reserve(bytes_);
}

WinogradConv2dPlan::Blocked WinogradConv2dPlan::blocked(const Task& task, Range summed, bool backward) const {
  const BlockRange sums{summed.begin / kBlock, summed.end / kBlock},
      vectors{task.from / kBlock, (task.from + task.channels) / kBlock};
  const BlockRange out = backward ? sums : vectors, in = backward ? vectors : sums;
  const std::int64_t row = (in.end - in.begin) * kBlockWeights;
  const WeightBlock block{.summed = backward ? row : kBlockWeights,
                          .vector = backward ? kBlockWeights : row,
                          .rotated = backward};
  return {out, in, block, at(blocks_) + task.thread * blockedOfThread()};
}

void WinogradConv2dPlan::transform(const Task& task, Range summed, bool backward, const float* weight,
                                   std::int64_t place, float* to) const {
#if defined(__x86_64__)
  const Blocked some = blocked(task, summed, backward);
  const WeightBlocks blocks{shape_.outChannels, shape_.inChannels, kTaps, kBlock, !backward};
  toBlocksAvx2(blocks, some.out, some.in, weight, some.data);
  kernels_.weights(some.block, summed.end - summed.begin, task.channels, some.data, place, to);
#else
  static_cast<void>(task), static_cast<void>(summed), static_cast<void>(backward), static_cast<void>(weight);
  static_cast<void>(place), static_cast<void>(to);
#endif
}

void WinogradConv2dPlan::transformBack(const Task& task, Range summed, const float* gradients,
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

void WinogradConv2dPlan::convolve(const Pass& pass, bool backward, const float* x, const float* weight,
                                  const float* bias, float* y) {
  const std::int64_t summed = pass.in.channels(), groups = groupsOf(pass.out);
  const bool keeps = keepsWeights(pass);
  const auto transformWeights = [&](const Task& task) {
    const std::int64_t place = apart(summed * task.channels);
    forEachSlice(task, pass.in, [&](Range some) {
      transform(task, some, backward, weight, place, weightsOf(pass, task) + some.begin * task.channels);
    });
  };
  if (keeps) forEachTask(pass.out, [&](const Task& task) { transformWeights(task); });
  for (std::int64_t i = 0; i < pass.chunks(); ++i) {
    const Chunk chunk = pass.chunk(i), next = pass.chunk(i + 1);
    parallelParts(context_, chunk.count, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
      kernels_.inputs(pass.in, pass.tiles, chunk, {begin, end}, x, at(inputs_));
    });
    forEachTask(pass.out, [&](const Task& task) {
      if (!keeps) transformWeights(task);
      float* products = at(products_) + task.thread * productsOfGroup(pass.atOnce);
      const Range tiles = task.of(chunk.count), soon = task.of(next.count);
      const std::int64_t begin = pass.in.blocks * task.group / groups,
                         end = pass.in.blocks * (task.group + 1) / groups;
      kernels_.products(chunk, tiles, summed, task.channels, at(inputs_), weightsOf(pass, task), products,
                        Prefetch{&pass.in,
                                 &pass.tiles,
                                 {next.first + soon.begin, soon.end - soon.begin},
                                 begin * kBlock,
                                 (end - begin) * kBlock,
                                 x},
                        Prefetch{&pass.out,
                                 &pass.tiles,
                                 {chunk.first + tiles.begin, tiles.end - tiles.begin},
                                 task.from,
                                 task.channels,
                                 y});
      kernels_.outputs(pass.out, pass.tiles, chunk, tiles, task.from, task.channels, products,
                       bias ? bias + task.from : nullptr, y);
    });
  }
}

void WinogradConv2dPlan::forward(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y) {
  if (!passes_.forward) return other_->forward(x, weight, bias, y);
  expectInput("x", x);
  expectParameter("weight", weight, shape_.weight());
  if (bias.defined()) expectParameter("bias", bias, Shape{shape_.outChannels});
  expectOutput("y", y);
  convolve(forward_, false, x.data<float>(), weight.data<float>(),
           bias.defined() ? bias.data<float>() : nullptr, y.data<float>());
}

void WinogradConv2dPlan::backwardData(const Tensor& gradY, const Tensor& weight, Tensor& gradX) {
  if (!passes_.backwardData) return other_->backwardData(gradY, weight, gradX);
  expectOutput("gradY", gradY);
  expectParameter("weight", weight, shape_.weight());
  expectInput("gradX", gradX);
  convolve(backward_, true, gradY.data<float>(), weight.data<float>(), nullptr, gradX.data<float>());
}

void WinogradConv2dPlan::addSums(const Chunk& chunk, const Task& task, float* biases) const {
  const float* sums = at(sums_);
  for (std::int64_t t = 0; t < chunk.count; ++t, sums += shape_.outChannels)
    for (std::int64_t c = task.from; c < task.from + task.channels; ++c) biases[c] += sums[c];
}

void WinogradConv2dPlan::backwardWeights(const Tensor& x, const Tensor& gradY, Tensor& gradWeight,
                                         Tensor& gradBias) {
  if (!passes_.backwardWeights) return other_->backwardWeights(x, gradY, gradWeight, gradBias);
  expectInput("x", x);
  expectOutput("gradY", gradY);
  expectParameter("gradWeight", gradWeight, shape_.weight());
  if (gradBias.defined()) expectParameter("gradBias", gradBias, Shape{shape_.outChannels});
  const Pass& pass = forward_;
  float* const biases = gradBias.defined() ? gradBias.data<float>() : nullptr;
  if (biases) std::fill_n(biases, shape_.outChannels, 0.0f);
  const std::int64_t all = pass.in.channels();
  const bool keeps = keepsWeights(pass);
  for (std::int64_t i = 0; i < pass.chunks(); ++i) {
    const Chunk chunk = pass.chunk(i);
    parallelParts(context_, chunk.count, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
      kernels_.inputs(pass.in, pass.tiles, chunk, {begin, end}, x.data<float>(), at(inputs_));
      kernels_.gradients(pass.out, pass.tiles, chunk, {begin, end}, gradY.data<float>(), at(gradients_),
                         at(sums_));
    });
    forEachTask(pass.out, [&](const Task& task) {
      const float* gradients = at(gradients_) + task.group * productsOfGroup(chunk.count);
      forEachSlice(task, pass.in, [&](Range some) {
        const std::int64_t place = apart((keeps ? all : some.end - some.begin) * task.channels);
        float* weights = weightsOf(pass, task) + (keeps ? some.begin * task.channels : 0);
        kernels_.weightProducts(chunk, all, some, task.channels, at(inputs_), gradients, i > 0, place,
                                weights);
        if (i + 1 == pass.chunks()) transformBack(task, some, weights, place, gradWeight.data<float>());
      });
      if (biases && task.part == 0) addSums(chunk, task, biases);
    });
  }
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
