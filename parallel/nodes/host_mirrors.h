#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "muster/parallel/exchange/exchange.h"

namespace muster {

/// Copies in host memory of replicas on GPUs, which operations, checkpoints and the start of a training read
/// and write instead. A round copies only the blocks that operations use, to the mirrors (`arrive`) and back
/// (`enqueueAfter`). Mirrors of the others, and of those that a replica updates by itself, are brought up to
/// date by `refresh`.
///
/// Calls for one participant come from one thread at a time; `load` and `refresh` while no participant works.
class HostMirrors {
 public:
  struct Options {
    /// Whether operations read or write a block of the replicas.
    std::function<bool(const SharedBlock&)> uses;
    /// Local work is a gradient: a replica updates itself between two calls of `enqueueAfter`. The first
    /// brings it all blocks except the statistics, which are merged later.
    bool gradients = false;
  };
  /// @param states  [local worker] the replicas' blocks.
  HostMirrors(const std::vector<std::vector<StateBlock*>>& states, Options options);

  std::vector<std::vector<StateBlock*>> states();  // [local worker] the mirrors
  /// Call it once, before the functions below. @param blocks  of the mirrors, in the order of `states`.
  void plan(std::span<const SharedBlock> blocks);

  /// A context on the CPU for the operations of a participant.
  Context& context(std::size_t local) { return *replicas_[local].onCpu; }

  /// Copies the replica to its mirror and waits, once per round. @throws DeviceFailure.
  void arrive(std::size_t local, Context& context);
  /// The operations that come next write the mirror.
  void begin(std::size_t local) { replicas_[local].begun = true; }
  /// Enqueues the copy of the mirror to its replica if `begin` was called in this round.
  void enqueueAfter(std::size_t local, Context& context);

  /// Replicas take the values of their mirrors, except gradients. Nothing may be enqueued on the replicas.
  void load();
  /// Mirrors of blocks that change without operations take the values of their replicas. Done on return.
  void refresh();

 private:
  struct Replica {
    std::vector<Tensor> own;          // [block]
    std::vector<StateBlock> mirrors;  // [block]
    std::unique_ptr<Context> onCpu;
    std::unique_ptr<Event> arrived;  // after the work that changed the replica; null before the first round
    bool fetched = false;            // the mirror has this round's values
    bool begun = false;              // operations write the mirror
    bool reduced = false;            // with gradients: `enqueueAfter` was called once
  };
  struct Use {
    bool byMerges = false;
    bool looked = false;       // it changes without operations
    bool afterUpdate = false;  // it is merged while or after replicas update themselves
    bool isGradients = false;
  };

  const Options options_;
  std::vector<Replica> replicas_;  // [local worker]
  std::vector<Use> uses_;          // [block]
};

}  // namespace muster
