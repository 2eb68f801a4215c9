#pragma once

#include <vector>

#include "muster/core/ops/linear_combination.h"
#include "muster/parallel/exchange/exchange.h"
#include "muster/parallel/exchange/merge_backup.h"
#include "muster/parallel/exchange/row_mixer.h"
#include "muster/parallel/runtime/peer_sums.h"

namespace muster {

/// An exchange for replicas in the memory of one host. Each participant reduces its own slice of a block,
/// reading all replicas in worker order, so the work is shared and the bits do not depend on timing.
class HostExchange final : public Exchange {
 public:
  /// @param states  [worker] the blocks of each replica that are reduced or merged, alike in number, names
  ///                and sizes.
  /// @param updaterState  what a merge does with the updater's blocks.
  /// @param groups  worker w is in group w mod this: a mean adds up each group by itself, in float64,
  ///                and then the groups in their order, as that many nodes do. `sum` adds up as many
  ///                neighbouring participants first, whose shares over nodes are one participant's. 1: all
  ///                workers in one sum.
  HostExchange(const std::vector<std::vector<StateBlock*>>& states, UpdaterState updaterState,
               int groups = 1);

  int participants() const override { return static_cast<int>(all_.size()); }
  std::span<const SharedBlock> blocks() const override { return blocks_; }
  int senders() const override { return groups_ == 1 ? participants() : static_cast<int>(groups_); }
  bool onePlace() const override { return true; }
  bool oneSum() const override { return groups_ == 1; }
  void doneByFirst(bool all) override { byFirst_ = all; }
  void merge(int participant, const SharedBlock& block, std::span<const double> weights, Context& context,
             Spread* spread) override;
  void mean(int participant, std::span<const Tensor> tensors, std::span<const double> weights, double keep,
            Slice slice, std::span<const Tensor> into, Context& context) override;
  void moments(int participant, const SharedBlock& block, std::span<const double> weights, double keep,
               Context& context) override;
  void mix(int participant, const SharedBlock& block, const Mixing& mixing, Context& context) override;
  void eachShare(int participant, std::int64_t elements, Slice slice, Context& context,
                 ShareUse use) override;
  void eachReplica(int participant, std::int64_t elements, Context& context, ShareUse use) override;
  void sum(int participant, std::span<double> values) override {
    if (!byFirst_) sums_.sum(participant, values);
  }
  void abort() noexcept override { sums_.abort(); }
  void restart() override { sums_.beginAll(); }
  void keepMerges(bool statisticsAlone) override {
    backup_.make(*this, statisticsAlone);
    keeps_ = true;
  }
  bool keepsMerges() const override { return keeps_; }
  void keep(int participant) override {
    if (keeps_) backup_.keep(participant, participants());
  }
  void keepAll() override {
    if (!backup_.made()) backup_.make(*this);
    backup_.keep(0, 1);
  }
  bool revert() override {
    backup_.restore();
    return backup_.made();
  }

 private:
  /// The participant's part of a slice of a block of `elements` elements.
  Slice shareOf(Slice slice, std::int64_t elements, int participant) const;
  void groupedMean(int participant, std::span<const Tensor> tensors, std::span<const double> weights,
                   double keep, Slice own, const Tensor& into, Context& context);

  const std::size_t groups_;
  std::vector<SharedBlock> blocks_;
  std::vector<std::size_t> all_;      // the workers
  std::vector<std::size_t> byGroup_;  // the workers, group after group: those that share a row are adjacent
  std::vector<std::vector<Term>> terms_;  // [worker] of the current mean; used by its participant
  std::vector<RowMixer> mixers_;          // [worker] used by its participant
  MergeBackup backup_;
  bool keeps_ = false;  // in every round
  PeerSums sums_;
  bool byFirst_ = false;  // the first participant does the parts of all
};

}  // namespace muster
