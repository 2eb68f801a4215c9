#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "muster/parallel/exchange/exchange.h"
#include "muster/parallel/nodes/host_mirrors.h"
#include "muster/parallel/nodes/node_channel.h"
#include "muster/parallel/nodes/node_flight.h"
#include "muster/parallel/nodes/node_messages.h"
#include "muster/parallel/nodes/node_reduction.h"
#include "muster/parallel/runtime/peer_sums.h"

namespace muster {

/// An exchange for replicas on several nodes. Participants are the workers of all nodes: worker l
/// of node n is participant l * N + n, and the replicas of other nodes are tensors without memory.
///
/// Each local participant merges its own slice of a block with the participants of the other nodes that have
/// the same slice (NodeReduction), so participants need not wait for each other. The bits are those of a
/// HostExchange of all workers with as many groups as there are nodes, and depend neither on the transport
/// nor on timing. Means and variances of all replicas are sent. `mix` sends replicas to the nodes whose rows
/// read them (NodeMixing).
///
/// Means that land in a later round (`SliceMean::later`) are formed from copies while the workers train, if
/// the strategy has declared a merged copy that is in flight and saved. The first operation of the next round
/// that merges waits for these means. The same holds for what rules with a codec send (`allGatherEncoded`).
///
/// If the replicas are on GPUs, `blocks()` are their mirrors in host memory (HostMirrors), and so are the
/// merged copies and the strategy's blocks: operations do what they do for replicas on CPUs.
class NodeExchange final : public Exchange, public NodeGroup {
 public:
  /// @param states  [local worker] the blocks of each replica that are reduced or merged.
  /// @param mirroring  for replicas on GPUs.
  NodeExchange(const std::vector<std::vector<StateBlock*>>& states, UpdaterState updaterState, NodeLink& link,
               std::optional<HostMirrors::Options> mirroring = {});
  ~NodeExchange() override;

  std::string describe() const override;
  static std::string describe(const NodeLink& link, bool mirrored);
  std::unique_ptr<MergeUndo> makeUndo(MergeUndo::Options options) override;
  Context& opsContext(int participant, Context& own) override;
  void arrive(int participant, Context& context) override;
  void begin(int participant) override;
  void enqueueAfter(int participant, Context& context) override;
  void abort() noexcept override;
  void restart() override;
  void wait() override;

  void merge(int participant, const SharedBlock& block, std::span<const double> weights, Context& context,
             Spread* spread) override;
  void mean(int participant, const SliceMean& mean, Context& context) override;
  void mix(int participant, const SharedBlock& block, const Mixing& mixing, Context& context) override;
  void eachShare(int participant, std::int64_t elements, Slice slice, Context& context,
                 ShareUse use) override;
  void eachReplica(int participant, std::int64_t elements, Context& context, ShareUse use) override;
  void allReduce(int participant, std::span<double> values) override;
  Tensor fetch(int participant, std::span<const Tensor> tensors, std::size_t from, std::size_t to,
               std::span<const Tensor> into, Context& context) override;

  // NodeGroup.
  void allGather(std::span<const std::byte> own, std::span<std::byte> all) override;
  void gather(const StrategyState& block, const Tensor& into) override;
  void gather(const SharedBlock& block, const Tensor& into) override;
  void allowGathering() override { gathering_ = true; }
  void answer() override;
  bool awaitLaunched() override;
  void allGather(int participant, Messages& messages) override;
  void allGatherEncoded(std::span<std::byte> all, std::span<const double> weights,
                        std::function<void(Context&)> then, bool later, Context& context) override;

 private:
  struct Part;
  // Channels after those of the link: two for `allGather`; then for each local participant one for its merges
  // and one for its means in flight; and two for NodeMessages.
  enum { kGatherChannel = 1, kAskChannel, kFirstChannel };

  int localOf(int participant) const { return participant / link_.nodes(); }
  std::size_t indexOf(int participant) const { return static_cast<std::size_t>(localOf(participant)); }
  /// Worker l of a node.
  std::size_t worker(int node, int local) const {
    return static_cast<std::size_t>(local * link_.nodes() + node);
  }
  /// Begins a mean that is formed while the workers train. @return false if it must be formed now.
  bool launch(int participant, const SliceMean& mean);
  Slice ownSlice(int participant, std::int64_t elements) const;
  /// The node of a participant.
  int nodeOf(std::size_t participant) const { return static_cast<int>(participant) % link_.nodes(); }
  Part& partAt(int participant);
  NodeReduction& reduction(int participant);
  void prepareFlights();
  /// Whether the strategy has blocks that differ between nodes, such as its codec's residuals.
  bool nodesHaveBlocks() const;
  /// Waits for what was launched in an earlier round.
  void land(int participant);
  /// Waits for a call. @throws the failure of what flew, which has ended the link, in place of a NodeFailure.
  void waitFor(NodeCall& call);
  /// Sends all nodes which block this node gathers (number from 1: the strategy's blocks, then the replicas'
  /// blocks; 0: none), and receives what they ask for. @return whether any node asks.
  bool ask(std::size_t block);
  /// This node's parts of a strategy's block.
  std::vector<Tensor> ownParts(const StrategyState& state) const;
  /// Sends this node's part of the blocks to the nodes that ask for them. @param into  receives the block
  /// that this node has asked for.
  void answer(const Tensor& into);
  /// Sends this node's parts of one block. @param own  [local] parts of one size.
  /// @param into  receives the parts of all, [local][node].
  void answerOne(std::size_t block, std::span<const Tensor> own, const Tensor& into);

  /// The arguments of an `allGatherEncoded` call.
  struct Encoded {
    std::span<std::byte> all;
    std::vector<double> weights;
    std::function<void(Context&)> then;
  };
  void send(const Encoded& encoded, NodeMessages& messages, Context& context);

  NodeLink& link_;
  const int local_;
  const std::unique_ptr<HostMirrors> mirrors_;  // null: the replicas are in host memory
  std::vector<std::size_t> here_;               // this node's workers
  std::vector<std::unique_ptr<Part>> parts_;    // [local participant]
  std::vector<Tensor> sent_;                    // [worker] for means in flight; empty if there are never any
  PeerSums sums_;
  NodeMessages messages_, messagesInFlight_;
  NodeCall allGathering_, asking_;
  std::vector<std::uint8_t> asked_;  // [node]
  bool gathering_ = false;           // whether nodes may gather replicas
  std::deque<Encoded> encoded_;      // those of an index below encodedCount_ may be in progress
  std::size_t encodedCount_ = 0;
  Encoded now_;                     // for a call that does not fly
  std::unique_ptr<Flight> flight_;  // runs calls that fly; null if there are never any
};

}  // namespace muster
