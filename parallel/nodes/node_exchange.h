#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "muster/parallel/nodes/host_mirrors.h"
#include "muster/parallel/nodes/node_gathering.h"
#include "muster/parallel/runtime/peer_sums.h"

namespace muster {

/// An exchange for replicas on several nodes. Participants are the workers of all nodes: worker l of node n
/// is participant l * N + n, and the replicas of other nodes are tensors without memory. Each local
/// participant merges its own slice of a block with the participants of the other nodes that have the same
/// slice. If the replicas are on GPUs, `blocks()` are their mirrors in host memory.
///
/// If the strategy has declared a merged copy that is in flight and saved, means that land in a later round
/// (`SliceMean::later`) and what rules with a codec send (`allGatherEncoded`) are sent while the workers
/// train. The first operation of the next round that merges waits for them.
class NodeExchange final : public Exchange {
 public:
  /// @param states  [local worker] the blocks of each replica that are reduced or merged.
  /// @param mirroring  for replicas on GPUs.
  NodeExchange(const std::vector<std::vector<StateBlock*>>& states, UpdaterState updaterState, NodeLink& link,
               std::optional<HostMirrors::Options> mirroring = {});
  ~NodeExchange() override;

  std::string describe() const override { return describe(link_, mirrors_ != nullptr); }
  static std::string describe(const NodeLink& link, bool mirrored);
  std::unique_ptr<MergeUndo> makeUndo(MergeUndo::Options options) override;
  Context& opsContext(int participant, Context& own) override {
    return mirrors_ ? mirrors_->context(indexOf(participant)) : own;
  }
  void arrive(int participant, Context& context) override {
    if (mirrors_) mirrors_->arrive(indexOf(participant), context);
  }
  void begin(int participant) override;
  void enqueueAfter(int participant, Context& context) override {
    if (mirrors_) mirrors_->enqueueAfter(indexOf(participant), context);
  }
  void abort() noexcept override {
    link_.fail();
    sums_.abort();
  }
  void restart() override;
  /// Also for launches, and for calls that an exception has left open.
  void wait() override;

  void merge(int participant, const SharedBlock& block, std::span<const double> weights, Context& context,
             Spread* spread) override;
  void mean(int participant, const SliceMean& mean, Context& context) override;
  void mix(int participant, const SharedBlock& block, const Mixing& mixing, Context& context) override;
  void eachShare(int participant, std::int64_t elements, Slice slice, Context& context,
                 const ShareUse& use) override;
  void eachReplica(int participant, std::int64_t elements, Context& context, const ShareUse& use) override;
  void allReduce(int participant, std::span<double> values) override;
  using Exchange::allGather;
  void allGather(int participant, Messages& messages) override;
  void allGatherEncoded(std::span<std::byte> all, std::span<const double> weights,
                        std::function<void(Context&)> then, bool later, Context& context) override {
    encoded_.run(all, weights, std::move(then), later, context);
  }
  Tensor fetch(int participant, std::span<const Tensor> tensors, std::size_t from, std::size_t to,
               std::span<const Tensor> into, Context& context) override;

 private:
  struct Part;
  // Channels: for each local participant one for merges and one for means in flight; two for encoded values;
  // one for NodeGathering.
  enum { kFirstChannel = NodeGathering::kFirstFree };

  int localOf(int participant) const { return participant / link_.nodes(); }
  int nodeOf(std::size_t participant) const { return static_cast<int>(participant) % link_.nodes(); }
  std::size_t indexOf(int participant) const { return static_cast<std::size_t>(localOf(participant)); }
  Part& partAt(int participant) { return *parts_[indexOf(participant)]; }
  Slice ownSlice(int participant, std::int64_t elements) const {
    return sliceOf(elements, localOf(participant), local_);
  }
  /// Replaces the replicas by those of all nodes.
  void spreadOut(SharedBlock& block) const;
  void prepareFlights();
  /// Begins a mean that is formed while the workers train. @return false if it must be formed now.
  bool launch(int participant, const SliceMean& mean);
  /// Waits for what was launched in an earlier round.
  void land(int participant);

  NodeLink& link_;
  const int local_;
  const std::unique_ptr<HostMirrors> mirrors_;  // null: the replicas are in host memory
  std::vector<std::size_t> here_;               // this node's workers
  std::vector<std::unique_ptr<Part>> parts_;    // [local participant]
  std::vector<Tensor> sent_;                    // [worker] for means in flight; empty if there are never any
  PeerSums sums_;
  EncodedGather encoded_;
  NodeGathering gathering_;
};

}  // namespace muster
