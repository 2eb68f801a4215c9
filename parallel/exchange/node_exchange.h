#pragma once

#include <memory>
#include <vector>

#include "muster/parallel/exchange/exchange.h"
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
/// merges waits for them.
class NodeExchange final : public Exchange {
 public:
  /// @param states  [local worker] the blocks of each replica that are reduced or merged.
  NodeExchange(const std::vector<std::vector<StateBlock*>>& states, UpdaterState updaterState,
               NodeLink& link);
  ~NodeExchange() override;

  int participants() const override { return local_ * link_.nodes(); }
  std::span<const SharedBlock> blocks() const override { return blocks_; }
  int node() const override { return link_.node(); }
  int nodes() const override { return link_.nodes(); }
  std::string describe() const override;
  void gather(std::span<const std::byte> own, std::span<std::byte> all) override { link_.gather(own, all); }

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
  void sum(int participant, std::span<double> values) override;

 private:
  struct Part;

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

  NodeLink& link_;
  const int local_;
  std::vector<SharedBlock> blocks_;
  std::vector<std::size_t> here_;             // this node's workers
  std::vector<std::unique_ptr<Part>> parts_;  // [local participant]
  std::vector<Tensor> sent_;                  // [worker] what is in flight; empty if nothing ever is
  std::vector<Backup> backups_;               // of what one merge overwrites on this node
  PeerSums sums_;
};

}  // namespace muster
