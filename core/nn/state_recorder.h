#pragma once

#include "muster/core/nn/listener.h"

namespace muster {

/// A merged listener that records the training, with the state of other listeners (Model::listenerState),
/// such as a CheckpointListener. Wherever it is in the list, it is called after the other listeners, and
/// before them in `onFitEnd`, where they may change the model.
class StateRecorder : public Listener {};

/// Whether the listener is a StateRecorder.
inline bool isRecorder(const Listener& listener) {
  return dynamic_cast<const StateRecorder*>(&listener) != nullptr;
}

/// The listeners in the order of their calls, except of `onFitEnd`.
Listeners recordersLast(Listeners listeners);

/// Calls `call(listener)` for each, in the order of `onFitEnd`. Does not allocate.
template <typename Call>
void forEachAtEnd(const Listeners& listeners, Call call) {
  for (const bool recorders : {true, false})
    for (const auto& listener : listeners)
      if (isRecorder(*listener) == recorders) call(*listener);
}

}  // namespace muster
