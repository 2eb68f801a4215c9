#pragma once

#include "tests/parallel/every_rule.h"

namespace muster::test {

/// Rules whose replicas differ after a merge, for four and for three workers.
inline std::vector<AnyStrategy> mixingRules(int workers) {
  std::vector<AnyStrategy> rules = {
      Gossip{}, Gossip{.frequency = 2, .modelEvery = 3},
      Gossip{.graph = GossipGraph::Ring, .frequency = 2, .updaterState = UpdaterState::Keep},
      Gossip{.graph = GossipGraph::Pairs, .updaterState = UpdaterState::Reset},
      Gossip{.graph = GossipGraph::Complete, .frequency = 3, .codec = Int8Codec{}}};
  const int part = workers % 2 == 0 ? 2 : 1;
  for (const auto state : {UpdaterState::Average, UpdaterState::Keep})
    rules.push_back(HierarchicalAveraging{.levels = {{.period = 1, .group = part}, {.period = 3}},
                                          .updaterState = state});
  return rules;
}

}  // namespace muster::test
