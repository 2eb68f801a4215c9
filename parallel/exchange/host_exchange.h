#pragma once

#include <vector>

#include "muster/parallel/exchange/row_mixer.h"
#include "muster/parallel/runtime/peer_sums.h"

namespace muster {

/// An exchange for replicas in the memory of one host. Each participant reduces its own slice of a block,
/// reading all replicas in worker order, so the work is shared and the bits do not depend on timing.
class HostExchange final : public Exchange {
 public:
  /// @param states, updaterState  see `sharedBlocks`.
  /// @param groups  sums are those of as many nodes: a mean adds up each group (worker w mod this) by itself,
  ///                in float64, and then the groups in their order; `allReduce` adds up as many neighbours
  ///                first.
  HostExchange(const std::vector<std::vector<StateBlock*>>& states, UpdaterState updaterState,
               int groups = 1);

  void runAllOnFirst(bool all) override { byFirst_ = all; }
  void merge(int participant, const SharedBlock& block, std::span<const double> weights, Context& context,
             Spread* spread) override;
  void mean(int participant, const SliceMean& mean, Context& context) override;
  void moments(int participant, const SharedBlock& block, std::span<const double> weights, double keep,
               Context& context) override;
  void mix(int participant, const SharedBlock& block, const Mixing& mixing, Context& context) override;
  void eachShare(int participant, std::int64_t elements, Slice slice, Context& context,
                 const ShareUse& use) override {
    const Slice own = shareOf(slice, elements, participant);
    if (own.length() > 0) use({context, all_, own});
  }
  void eachReplica(int participant, std::int64_t elements, Context& context, const ShareUse& use) override;
  void allReduce(int participant, std::span<double> values) override {
    if (!byFirst_) sums_.sum(participant, values);
  }
  void abort() noexcept override { sums_.abort(); }
  void restart() override { sums_.beginAll(); }

 private:
  /// The participant's part of a slice of a block of `elements` elements.
  Slice shareOf(Slice slice, std::int64_t elements, int participant) const;
  /// Calls `form(mixer)` for a few elements at a time, those of the workers for which `reads(worker)`.
  template <typename Reads, typename Form>
  void inPieces(int participant, const SharedBlock& block, Context& context, Reads reads, Form form);
  void groupedMean(int participant, const SliceMean& mean, Context& context);

  const std::size_t groups_;
  std::vector<std::size_t> all_;      // the workers
  std::vector<std::size_t> byGroup_;  // the workers, group after group: those that share a row are adjacent
  std::vector<std::vector<Term>> terms_;  // [worker] of the current mean; used by its participant
  std::vector<RowMixer> mixers_;          // [worker] used by its participant
  PeerSums sums_;
  bool byFirst_ = false;  // participant 0 runs every share
};

}  // namespace muster
