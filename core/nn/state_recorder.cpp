#include "muster/core/nn/state_recorder.h"

#include <algorithm>

namespace muster {

Listeners recordersLast(Listeners listeners) {
  std::ranges::stable_partition(listeners, [](const auto& listener) { return !isRecorder(*listener); });
  return listeners;
}

}  // namespace muster
