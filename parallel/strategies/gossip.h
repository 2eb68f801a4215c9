#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/base/fields.h"
#include "muster/parallel/strategies/codec.h"
#include "muster/parallel/strategies/period.h"

namespace muster {

/// With which replicas a worker's replica is mixed at the end of a round.
enum class GossipGraph {
  Exponential,  ///< with that of worker w - 2^i (modulo workers), i = 0, 1, .. in turn
  Ring,         ///< with those of both neighbours
  Pairs,        ///< workers mix in pairs; any two do so once in workers - 1 rounds
  Complete      ///< with all: averaging
};

template <>
struct EnumNames<GossipGraph> {
  static constexpr std::array<std::pair<GossipGraph, std::string_view>, 4> kNames{{
      {GossipGraph::Exponential, "exponential"},
      {GossipGraph::Ring, "ring"},
      {GossipGraph::Pairs, "pairs"},
      {GossipGraph::Complete, "complete"},
  }};
};

/// Decentralised training: at the end of each round each worker mixes its replica with those of a few others.
/// Formulas with a codec, and when the user's model is formed: examples/docs/rules.md, "Gossip".
///
///     x_i = sum_j p_ij n_j x_j / sum_j p_ij n_j
///
/// p_ij is 1 / (size of the neighbourhood) for the worker itself and those it is mixed with, else 0; n_j is
/// worker j's loss normaliser since the last round. A replica whose neighbourhood has not trained does not
/// change. The user's model is the mean of the replicas with equal weights. Listeners get "period", and with
/// `measureDistance` "distance to the mean" after mixing (MergeEvent::values).
/// Sources: Lian et al. 2017 (D-PSGD); Assran et al. 2019 (stochastic gradient push), whose weights remain
/// from round to round.
struct Gossip {
  GossipGraph graph = GossipGraph::Exponential;
  /// Iterations of each worker in a round.
  Period frequency = 1;
  /// What mixing does with the updater's state; Average: it is mixed like the parameters.
  UpdaterState updaterState = UpdaterState::Average;
  Codec codec = {};  ///< on the ring or the complete graph; on the ring not PowerSgdCodec
  /// Rounds from one mean of the replicas to the next; 1 to 2^40. Averages on the complete graph, and of two
  /// workers, are formed in every round anyway.
  std::int64_t modelEvery = 1;
  bool measureDistance = false;  ///< costs a pass over the replicas, and on GPUs waits for it

  void validate() const;
  std::unique_ptr<Strategy> make() const;
  void fields(Fields& f);
  static std::vector<NamedStrategy> named(int workers);
};

/// The workers whose replicas worker `worker` mixes in round number `round`, from 0: ascending, itself
/// included. @param into  overwritten.
void gossipNeighbourhood(GossipGraph graph, std::size_t worker, std::size_t workers, std::int64_t round,
                         std::vector<std::size_t>& into);

}  // namespace muster
