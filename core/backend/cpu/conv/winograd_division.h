#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "muster/core/backend/cpu/conv/winograd_pass.h"

// Not for files that are compiled for one instruction set: it includes library functions.

namespace muster::cpu::winograd {

/// A group of channels that are computed together by a thread, and one of `parts` parts of the summed
/// channels.
struct ChannelTask {
  std::int64_t from, channels;
  std::int64_t group, part, parts;
  std::int64_t thread;

  Range summedOf(const Images& images) const {
    return {images.blocks * part / parts * kBlock, images.blocks * (part + 1) / parts * kBlock};
  }
};

/// How the passes of a convolution are divided among threads, and where in the workspace each has its
/// numbers. A value. Offsets are in floats, multiples of sixteen (64 bytes).
class Division {
 public:
  /// Summed channels whose weights a thread transforms at once, so that they stay in its L2 cache in between.
  static constexpr std::int64_t kSummedAtOnce = 64;

  /// @param group  channels that are computed together.
  Division(const Pass& forward, const Pass& backward, std::int64_t group, std::int64_t threads)
      : group_(group), threads_(threads) {
    std::int64_t weights = 0, inputs = 0, products = 0;
    for (const Pass* pass : {&forward, &backward}) {
      const std::int64_t held = keepsWeights(*pass) ? groupsOf(pass->out) : threads;
      weights = std::max({weights, held * weightsOfGroup(*pass), threads * sliceOf(*pass)});
      inputs = std::max(inputs, inputsOf(*pass));
      products = std::max(products, productsOf(*pass));
    }
    blocks_ = rounded(weights);
    inputs_ = blocks_ + rounded(blocksOfThread() * threads);
    products_ = inputs_ + rounded(inputs * threads);
    sums_ = products_ + rounded(products * threads);
    floats_ = sums_ + rounded(forward.atOnce * group * threads);
  }

  /// Bytes of the workspace.
  std::size_t bytes() const { return static_cast<std::size_t>(floats_) * sizeof(float); }

  std::int64_t groupsOf(const Images& images) const { return (images.channels() + group_ - 1) / group_; }
  /// One if there is a group for each thread.
  std::int64_t partsOf(const Images& images) const {
    return (threads_ + groupsOf(images) - 1) / groupsOf(images);
  }
  ChannelTask taskOf(const Images& images, std::int64_t thread, std::int64_t group, std::int64_t part = 0,
                     std::int64_t parts = 1) const {
    const std::int64_t from = group * group_;
    return {from, std::min(group_, images.channels() - from), group, part, parts, thread};
  }

  /// Whether each of several threads computes all channels of some tiles, instead of some channels of all
  /// tiles. They then read the same weights, which is better if these are small.
  bool splitsTiles(const Pass& pass) const {
    return threads_ > 1 && (pass.small || threads_ > groupsOf(pass.out));
  }
  /// Whether memory holds the transformed weights of all groups; else those of one group per thread.
  bool keepsWeights(const Pass& pass) const { return splitsTiles(pass) || pass.count > pass.atOnce; }

  /// The transformed weights of the task's group.
  std::int64_t weightsOf(const Pass& pass, const ChannelTask& task) const {
    return (keepsWeights(pass) ? task.group : task.thread) * weightsOfGroup(pass);
  }
  /// Gradients of the weights of the task's group before they are transformed.
  std::int64_t gradientsOf(const Pass& pass, const ChannelTask& task) const {
    return task.group * weightsOfGroup(pass);
  }
  /// Such gradients of at most kSummedAtOnce summed channels, which replace those before.
  std::int64_t sliceOf(const Pass& pass, std::int64_t thread) const { return thread * sliceOf(pass); }
  /// Some weights in blocks of channels.
  std::int64_t blocksOf(std::int64_t thread) const { return blocks_ + thread * blocksOfThread(); }
  /// The transformed inputs of a chunk.
  std::int64_t inputsOf(const Pass& pass, std::int64_t thread) const {
    return inputs_ + thread * inputsOf(pass);
  }
  /// Products of a group, or its transformed gradients.
  std::int64_t productsOf(const Pass& pass, std::int64_t thread) const {
    return products_ + thread * productsOf(pass);
  }
  /// Sums of the gradients of each tile of a chunk. @param pass  the forward pass.
  std::int64_t sumsOf(const Pass& pass, std::int64_t thread) const {
    return sums_ + thread * pass.atOnce * group_;
  }

 private:
  static std::int64_t rounded(std::int64_t floats) { return (floats + 15) / 16 * 16; }
  std::int64_t weightsOfGroup(const Pass& pass) const { return kPlaces * apart(pass.in.channels() * group_); }
  std::int64_t sliceOf(const Pass& pass) const {
    return kPlaces * apart(std::min(pass.in.channels(), kSummedAtOnce) * group_);
  }
  static std::int64_t inputsOf(const Pass& pass) {
    return kPlaces * apart(pass.atOnce * apart(pass.in.channels()));
  }
  std::int64_t productsOf(const Pass& pass) const { return kPlaces * apart(pass.atOnce * group_); }
  std::int64_t blocksOfThread() const { return kSummedAtOnce * group_ * kTaps; }

  std::int64_t group_, threads_;
  std::int64_t blocks_ = 0, inputs_ = 0, products_ = 0, sums_ = 0, floats_ = 0;  // weights are first
};

}  // namespace muster::cpu::winograd
