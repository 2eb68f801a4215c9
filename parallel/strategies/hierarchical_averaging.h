#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "muster/core/base/fields.h"
#include "muster/parallel/strategies/codec.h"

namespace muster {

/// Averaging in growing groups: workers of one device or one machine merge often, all workers seldom.
///
///     HierarchicalAveraging{.levels = {{.period = 4, .group = 2}, {.period = 16}}}
///
/// The last level merges after its period, at the end of an epoch, and at a stop. In between, if the periods
/// of several levels divide the iterations since then, the highest of them merges: workers 0 to group - 1,
/// the next `group`, and so on, each group by itself, as Averaging does. Over several nodes workers are
/// counted node by node, so groups that divide the workers of a node send nothing over the network.
///
/// The user's model is what the last level would merge; each group has the weight of what its workers have
/// trained since the level above merged. Listeners get "group" (MergeEvent::values), the number of workers
/// merged with each other. Merges within nodes: examples/docs/rules.md.
/// Source: PyTorch's HierarchicalModelAverager, which gives all workers the same weight.
struct HierarchicalAveraging {
  /// One level: a period and a size of groups.
  struct Level {
    std::int64_t period = 1;  ///< iterations of each worker between merges; 1 to 2^40
    int group = 0;            ///< workers in a group: divides that of the next level; 0: all
  };
  /// By ascending period; the last one merges all workers.
  std::vector<Level> levels = {{}};
  UpdaterState updaterState = UpdaterState::Average;
  Codec codec = {};  ///< with several levels not PowerSgdCodec

  void validate() const;
  std::unique_ptr<Strategy> make() const;
  /// Levels are a text, as in "4:2,16:all".
  void fields(Fields& f);
  static std::vector<NamedStrategy> named(int workers);
};

}  // namespace muster
