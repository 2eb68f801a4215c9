#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "muster/core/optim/state_block.h"
#include "muster/parallel/exchange/strategy_block.h"

namespace muster {

/// What a worker does with a batch.
enum class LocalWork {
  Step,     ///< a whole step
  Gradient  ///< the gradient alone; the round ends with every replica updating itself by what was merged
};

/// The state of a worker when it continues after an arrival.
struct Departure {
  int worker = 0;
  std::int64_t iteration = 0, epoch = 0;  ///< finished; an iteration is W batches dispatched
  double learningRate = 0;                ///< of the next step, by the schedule of the model's updater
};

/// Arrivals of workers that do not wait for each other: each trains some iterations, arrives, is merged,
/// takes the global parameters, and continues.
///
/// Time is virtual: a worker's iteration lasts 1 / speed. Batches go to the worker with the smallest (time,
/// worker), and arrivals have the same order, so the same plan gives the same bits however fast the threads
/// are. For real time see `wallClock`.
struct ArrivalPlan {
  static constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();

  std::vector<std::int64_t> iterations = {};  ///< [worker] between its arrivals, at least 1
  /// If iterations vary: those to the next arrival, at least 1, a function of the departure. Thread-safe.
  std::function<std::int64_t(const Departure&)> iterationsFrom = {};
  std::vector<double> speeds = {};  ///< [worker] iterations in a unit of virtual time, above 0
  /// Arrivals less than this time after the first one are merged together; infinity: those of all workers. 0:
  /// each by itself, also after a wait for `staleness` above 0, in the order of arrival.
  double grace = 0;
  /// A worker that has arrived c times continues when every other worker has arrived c - staleness times. 0:
  /// all workers wait for each other.
  std::int64_t staleness = kUnbounded;
  /// Arrivals are in real time, and the next batch goes to the worker that asks first, so a run cannot be
  /// repeated. Speeds and grace then have no effect.
  bool wallClock = false;
};

/// A worker's part in a landing, which merges some arrivals.
struct Arrival {
  bool arrives = false;  ///< what it has trained since its last arrival is merged in this landing
  bool resumes = false;  ///< takes the global parameters after the landing and continues
  /// Landings since it last took the global parameters, without this one.
  std::int64_t staleness = 0;
};

/// What is true of a strategy in the whole training, with one number of workers. The defaults are right for
/// every rule; some cost time or memory that another value saves.
struct StrategyTraits {
  LocalWork localWork = LocalWork::Step;
  /// What a merge of all state does with the updater's state.
  UpdaterState updaterState = UpdaterState::Average;
  /// Number of fragments that the strategy launches and lands, 1 to 64; numbered from 0.
  int fragments = 1;
  /// Name of the block that fills the parameters of the user's model; "": the merged copy. It must be one of
  /// `Strategy::blocks` with Place::MergedCopy, saved and not in flight. A training that is resumed from a
  /// file starts from it.
  std::string modelSource = {};
  /// For a rule whose workers do not wait for each other at the end of rounds: its arrivals. `land` is
  /// then called for each landing, with fragment 0, and one thread may call it for all participants, so it
  /// must not call MergeOps::allReduce or allGather. At the end of an epoch and at a stop it is called once
  /// more, with all that the workers have trained since their last arrivals. Each worker counts its own
  /// updates. `contribute` is not called.
  std::optional<ArrivalPlan> arrivals = {};

  /// Whether replicas may differ from each other after a merge. If so, a checkpoint over several nodes
  /// collects the replicas of all nodes, for which every node waits at the end of each round, until node 0
  /// has called its listeners. False only if each merge leaves all replicas equal: a checkpoint then holds
  /// those of its node. (Blocks of rule Keep, and the strategy's blocks of Place::Replica, are always
  /// collected.)
  bool replicasDiffer = true;
  /// Whether a merge may give numbers larger than those of all replicas, as outer momentum does. Such a merge
  /// may overflow, so if replicas hold very large numbers, the last merge is kept before it; on GPUs it is
  /// always kept, and the merge is checked there.
  /// False only for weighted means and other combinations that stay between the replicas; with a codec true,
  /// because decoded values include residuals.
  bool extrapolates = true;
  /// Whether `launch`, `land` or `afterReduction` may throw, other than in the first merge and by an
  /// operation whose result is not finite. If so, each round first copies the merged copies and the
  /// strategy's other blocks (which doubles their memory), to restore the user's model after an
  /// exception. If it is false and they throw, the model keeps what it
  /// held when `fit` began or a listener last asked for it. Rules of the library allocate before their first
  /// merge, so theirs is false.
  bool mayThrow = true;
  /// Whether `launch` and `land` may be called before the scores of the round's last steps are read, if the
  /// exchange guards merges (Topology::guardsMerges): they may call no operation except MergeOps::merge and
  /// MergeOps::mergeState, and wait for nothing. The scores are known when `plan` is called.
  bool mergesBeforeScores = false;
  /// The kinds of blocks of the replicas that operations read or write; empty: all, the gradients only if
  /// local work is a gradient. Workers on GPUs over nodes copy these blocks, except those of rule Keep, to
  /// host memory and back at the end of each round.
  std::vector<BlockKind> used = {};
  /// Bytes of host memory that `Strategy::begin` allocates on each node in addition to the blocks, a function
  /// of the number of parameters; empty: negligible.
  std::function<std::int64_t(std::int64_t parameters)> hostBytes = {};
  /// Why the strategy cannot train over several nodes (Builder::nodes); "": it can.
  std::string whyNotOverNodes = {};
};

}  // namespace muster
