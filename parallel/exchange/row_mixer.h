#pragma once

#include <span>
#include <vector>

#include "muster/core/ops/linear_combination.h"
#include "muster/parallel/exchange/exchange.h"
#include "muster/parallel/exchange/mixing.h"

namespace muster {

/// Mixes replicas a few elements at a time where one context reaches them: all new values of these elements
/// are formed in a scratch memory, from the old ones, and then written. Used by one thread.
///
/// Of means and variances (MergeRule::Moments) a row is a mixture of distributions: the mean is the row's,
/// and the variance that of drawing from replica j with probability a_wj.
class RowMixer {
 public:
  explicit RowMixer(std::size_t workers);

  /// Scratch memory that is large enough for `elements` elements of such blocks at a time.
  static std::size_t bytesFor(std::size_t workers, std::int64_t elements);
  /// How many elements of the block (means, of which there are as many variances) fit at a time.
  static std::int64_t elementsAtATime(const SharedBlock& block, std::size_t bytes);

  /// Begins with elements of a block. @param scratch  bytes, in the memory of the context's device.
  void begin(const SharedBlock& block, Slice slice, const Tensor& scratch, Context& context);
  /// The elements of this replica are read where they are.
  void read(std::size_t worker);
  /// The elements of this replica are copied here by the caller, part by part: those of a replica on another
  /// device. @param part  1 for variances, else 0.
  Tensor inbox(std::size_t worker, int part);
  /// Forms the rows of these workers, once all replicas that they read are here, and writes them.
  void mix(const Mixing& mixing, std::span<const std::size_t> workers);
  /// Forms the merged copy of moments, before `mix`. @param keep  the share of what it was, in [0, 1).
  void merge(std::span<const double> weights, double keep = 0);

 private:
  int parts() const { return moments_ ? 2 : 1; }
  Tensor slot(std::size_t index) const;
  /// The elements at hand of a replica; of moments means, then variances.
  Tensor source(std::size_t worker) const;
  void form(std::span<const MixingShare> row, const Tensor& to);
  void addMoments(std::size_t worker, double weight);
  /// The elements at hand, from a block to scratch memory and back.
  void fetch(const Tensor& block, const Tensor& to) const;
  void write(const Tensor& from, const Tensor& block) const;

  const SharedBlock* block_ = nullptr;
  bool moments_ = false;
  Slice slice_;
  Tensor scratch_;
  Context* context_ = nullptr;
  std::vector<char> copied_;      // [worker] whether its elements are in the scratch memory
  std::vector<Term> terms_;       // of the row at hand
  std::vector<Tensor> replicas_;  // likewise, of moments
  std::vector<double> weights_;   // likewise
};

}  // namespace muster
