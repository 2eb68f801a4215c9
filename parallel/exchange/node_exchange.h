#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "muster/parallel/exchange/exchange.h"
#include "muster/parallel/exchange/node_flight.h"
#include "muster/parallel/exchange/node_messages.h"
#include "muster/parallel/exchange/node_reduction.h"
#include "muster/parallel/runtime/peer_sums.h"

namespace muster {

/// Replicas on the CPUs of several nodes. Participants are those of all nodes: worker l of node n is
/// participant l * N + n, and the replicas of other nodes are tensors without memory.
///
/// Each local participant merges its own slice of a block with the participants of the other nodes that have
/// the same slice (NodeReduction), so participants need not wait for each other. The bits are those of a
/// HostExchange of all workers with as many groups as there are nodes, and depend neither on the transport
/// nor on timing. Means and variances travel from every replica, as they are few.
///
/// Means that land in a later round (MeansInFlight) are formed from copies while the workers train, if the
/// strategy has declared a merged copy that is in flight and saved. The first verb of the next round that
/// merges waits for them. So are what rules with a codec send (`tellNodes`).
class NodeExchange final : public Exchange {
 public:
  /// @param states  [local worker] the blocks of each replica that are reduced or merged.
  NodeExchange(const std::vector<std::vector<StateBlock*>>& states, UpdaterState updaterState,
               NodeLink& link);
  ~NodeExchange() override;

  int participants() const override { return local_ * link_.nodes(); }
  int senders() const override { return link_.nodes(); }
  std::span<const SharedBlock> blocks() const override { return blocks_; }
  int node() const override { return link_.node(); }
  int nodes() const override { return link_.nodes(); }
  std::string describe() const override;
  void gather(std::span<const std::byte> own, std::span<std::byte> all) override;
  void collect(const StrategyState& block, const Tensor& into) override;

  void begin(int participant) override;
  void abort() noexcept override;
  void restart() override;
  void wait() override;
  bool revert() override;

  void merge(int participant, const SharedBlock& block, std::span<const double> weights, Context& context,
             Spread* spread) override;
  void mean(int participant, std::span<const Tensor> tensors, std::span<const double> weights, double keep,
            Slice slice, std::span<const Tensor> into, Context& context) override;
  /// @throws InvalidArgument, as `sum`: strategies that need them are not for nodes yet.
  void mix(int participant, const SharedBlock& block, const Mixing& mixing, Context& context) override;
  void eachShare(int participant, std::int64_t elements, Slice slice, Context& context,
                 ShareUse use) override;
  void eachReplica(int participant, std::int64_t elements, Context& context, ShareUse use) override;
  void tellNodes(std::span<std::byte> all, std::span<const double> weights,
                 std::function<void(Context&)> then, Context& context) override;
  void sum(int participant, std::span<double> values) override;

 private:
  struct Part;
  // Channels after those of the link: beside the merges, and for them one a local participant, one for its
  // means in flight, and two more.
  enum { kGatherChannel = 1, kAskChannel, kFirstChannel };

  int localOf(int participant) const { return participant / link_.nodes(); }
  /// Worker l of a node.
  std::size_t worker(int node, int local) const {
    return static_cast<std::size_t>(local * link_.nodes() + node);
  }
  Slice ownSlice(int participant, std::int64_t elements) const;
  Part& partAt(int participant);
  NodeReduction& reduction(int participant);
  void prepareFlights();
  /// What was launched in an earlier round is there.
  void land(int participant);
  bool launch(int participant, std::span<const Tensor> tensors, std::span<const double> weights, Slice own,
              const Tensor& into);
  void mergeMoments(int participant, const SharedBlock& block, std::span<const double> weights,
                    Context& context);

  struct Backup {
    Tensor live, saved;
  };

  /// Tells all nodes which block this one asks for (its number from 1; 0: none), and hears from them.
  /// @return whether any node asks.
  bool ask(std::uint8_t block);
  /// Sends this node's part of the blocks to the nodes that ask for them. @param into  what it has asked for.
  void answer(const Tensor& into);

  /// What is sent and taken by `tellNodes`.
  struct Told {
    std::span<std::byte> all;
    std::vector<double> weights;
    std::function<void(Context&)> then;
  };
  void tell(const Told& told, NodeMessages& messages, Context& context);

  NodeLink& link_;
  const int local_;
  std::vector<SharedBlock> blocks_;
  std::vector<std::size_t> here_;             // this node's workers
  std::vector<std::unique_ptr<Part>> parts_;  // [local participant]
  std::vector<Tensor> sent_;                  // [worker] what is in flight; empty if nothing ever is
  std::vector<Backup> backups_;               // of what one merge overwrites on this node
  PeerSums sums_;
  NodeMessages messages_, messagesInFlight_;
  NodeCall gathering_, asking_;
  std::vector<std::uint8_t> asked_;  // [node]
  std::deque<Told> told_;            // those of an index below toldCount_ may be under way
  std::size_t toldCount_ = 0;
  Told now_;                        // told at once
  std::unique_ptr<Flight> flight_;  // of what is told; null if nothing ever flies
};

}  // namespace muster
