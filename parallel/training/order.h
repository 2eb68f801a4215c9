#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace muster {

/// What a worker does next in a training. A value: other workers may end further rounds before it is read.
struct Order {
  enum class Do {
    Train,   ///< batches, up to `iterations`
    Merge,   ///< its share of the round's merge
    Update,  ///< with gradients: its replica, with what was merged
    Visit,   ///< call `visit`
    End      ///< the run is over, or was aborted
  };
  /// Finished, over the life of the model.
  struct Counters {
    std::int64_t iteration = 0, epoch = 0;
  };

  Do what = Do::End;
  std::int64_t iterations = 0;            ///< the worker's until the next round's end, or an upper bound
  bool merged = false;                    ///< the worker's contribution was merged
  bool epochOver = false;                 ///< a new epoch begins
  std::optional<Counters> counters = {};  ///< of the replica from now on; nothing: they stay
  /// Called with the worker's index on its node; must not throw.
  const std::function<void(int)>* visit = nullptr;
};

}  // namespace muster
