#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/base/fields.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// What a merge does with the updater's state (momentum).
enum class UpdaterState {
  Average,  ///< it becomes the mean over the workers
  Keep,     ///< each worker keeps its own
  Reset     ///< zero after every merge
};

template <>
struct EnumNames<UpdaterState> {
  static constexpr std::array<std::pair<UpdaterState, std::string_view>, 3> kNames{
      {{UpdaterState::Average, "average"}, {UpdaterState::Keep, "keep"}, {UpdaterState::Reset, "reset"}}};
};

/// @throws InvalidArgument for a value that is none of these.
void validate(UpdaterState state);

/// A state block that a strategy declares. It is saved and resumed with the user's model
/// (Model::strategyState), and starts again if the user changes the model between two `fit()` calls.
struct StrategyBlock {
  enum class Place {
    MergedCopy,  ///< one for each merged copy, equal on all devices: outer momentum, a centre
    Replica,     ///< one per replica: what was sent, what was not
    Node         ///< one for each sender of a merge (Topology::senders): a node, else a replica
  };
  enum class Start { Zeros, Parameters };

  std::string name;
  Place place = Place::MergedCopy;
  /// Number of elements on the CPU, float64, as for counters and thresholds; with Place::Replica only. 0: as
  /// many as the parameters, on their device.
  std::int64_t numbers = 0;
  /// Whether all its values are counts. If so, a checkpoint with a value that is no integer in [0, 2^60) is
  /// rejected. A strategy checks in `begin` what else it requires of numbers.
  bool counts = false;
  std::optional<DType> dtype = {};  ///< Float32 or Float64; empty: the parameters' type
  Start start = Start::Zeros;
  bool saved = true;  ///< false: scratch memory, whose values matter within one merge only
  /// Whether its values matter only while a fragment is in flight, or between arrivals: a checkpoint made
  /// then holds them, the model does not.
  bool inFlight = false;
  /// Whether all its values are 0 unless the strategy is pending (Strategy::pending): then a checkpoint over
  /// nodes needs none of them.
  bool zeroUnlessPending = false;
  /// Whether in a training that is resumed with another number of workers or nodes each begins with the mean
  /// of the saved values, as for residuals, so that on average nothing is lost; else the block starts again.
  bool meanForOthers = false;
  /// With Place::Node: over nodes the strategy sends encoded values (MergeOps::allGatherEncoded), also while
  /// a fragment is in flight, instead of forming means; this block holds what they are decoded to.
  bool encoded = false;
};

/// Such a block in memory.
struct StrategyState {
  StrategyBlock declared;
  std::size_t apart = 1;       // number of different tensors: worker w has number w modulo this
  std::vector<Tensor> values;  // [worker] Place::MergedCopy: one per device; Place::Node: one per sender
};

}  // namespace muster
