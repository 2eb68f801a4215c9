#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "muster/core/ops/linear_combination.h"
#include "muster/parallel/exchange/exchange.h"

namespace muster {

/// Mixes replicas that one context reaches, a few elements at a time: forms all new values of these elements
/// in scratch memory, from the old values, and then writes them. Used by one thread.
///
/// For means and variances (MergeRule::Moments) a row is a mixture of distributions: the new mean and
/// variance are those of drawing from replica j with probability a_wj.
class RowMixer {
 public:
  explicit RowMixer(std::size_t workers);

  static std::size_t bytesFor(std::size_t workers, std::int64_t elements);
  /// How many elements of the block (means, of which there are as many variances) fit at a time.
  static std::int64_t elementsAtATime(const SharedBlock& block, std::size_t bytes);

  /// On the CPU: begins with the slices of a slice, one after the other, and calls `use` with each. Allocates
  /// nothing.
  template <typename Use>
  void inPieces(const SharedBlock& block, Slice slice, Context& context, Use use) {
    alignas(64) std::array<std::byte, kScratchBytes> memory;
    const Tensor scratch = Tensor::view(memory.data(), {kScratchBytes}, DType::UInt8);
    const std::int64_t step = elementsAtATime(block, kScratchBytes);
    require(step > 0, "mix: {} workers are too many", copied_.size());
    for (std::int64_t at = slice.begin; at < slice.end; at += step) {
      const Slice piece{at, std::min(slice.end, at + step)};
      begin(block, piece, scratch, context);
      use(piece);
    }
  }
  /// Begins with a slice of a block. @param scratch  bytes, in the memory of the context's device.
  void begin(const SharedBlock& block, Slice slice, const Tensor& scratch, Context& context);
  /// The replica's elements are read in place.
  void read(std::size_t worker);
  /// Where the caller copies a part of the elements of a replica on another device or node to.
  Tensor inbox(std::size_t worker, int part);
  /// Forms the rows of these workers and writes them. Call it once all replicas that they read are here.
  void mix(const Mixing& mixing, std::span<const std::size_t> workers);
  /// Forms the merged copy of moments, before `mix`. @param keep  the share of its old value, in [0, 1).
  /// @param mergedCopy  of the block, on the context's device.
  void merge(std::span<const double> weights, double keep, const Tensor& mergedCopy);

 private:
  static constexpr std::size_t kScratchBytes = 1 << 18;  // they fit the L2 cache

  bool ofMoments() const { return block_->rule == MergeRule::Moments; }
  /// Where part `p` of the current elements is in a block, and where in a slot.
  Tensor inBlock(const Tensor& block, int p) const;
  Tensor inSlot(const Tensor& slot, int p) const;
  Tensor slot(std::size_t index) const;
  Tensor source(std::size_t worker) const;
  void form(std::span<const MixingShare> row, const Tensor& to);
  void addMoments(std::size_t worker, double weight);
  /// Copy the current elements from a block to scratch memory, and back.
  void fetch(const Tensor& block, const Tensor& to) const;
  void write(const Tensor& from, const Tensor& block) const;

  const SharedBlock* block_ = nullptr;
  Slice slice_;
  Tensor scratch_;
  Context* context_ = nullptr;
  std::vector<char> copied_;      // [worker] whether its elements are in the scratch memory
  std::vector<Term> terms_;       // of the current row
  std::vector<Tensor> replicas_;  // of the current row of moments
  std::vector<double> weights_;   // [replicas_]
};

}  // namespace muster
